package verify

import (
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// Proof is what holds of every tool of a package, whatever its code does,
// because it requests nothing with which it could be otherwise.
type Proof struct {
	ReadOnly bool `json:"readOnly"`
	Closed   bool `json:"closed"`
}

// safeMethods are those that RFC 9110, section 9.2.1, defines to be safe.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

// Prove returns what a package's requests prove.
func Prove(r tool.Requests) Proof {
	p := Proof{
		ReadOnly: !r.KV && len(r.SQL) == 0 && len(r.Outbox) == 0 && len(r.Services) == 0,
		Closed:   len(r.HTTP) == 0 && len(r.Outbox) == 0 && len(r.Services) == 0,
	}
	for _, v := range r.Volumes {
		// Without an access of its own a volume is given as each tool's claim can use it.
		if v.Access != capabilities.ReadAccess {
			p.ReadOnly = false
		}
	}
	for _, h := range r.HTTP {
		unsafe := func(m string) bool { return !slices.Contains(safeMethods, m) }
		if len(h.Methods) == 0 || slices.ContainsFunc(h.Methods, unsafe) {
			p.ReadOnly = false
		}
	}
	return p
}
