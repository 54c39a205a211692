package outbox

import (
	"errors"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// The bounds of a message, in bytes, and of a call.
const (
	MaxBody     = 1 << 20
	MaxKey      = 256
	MaxMessages = 100 // a call

	maxHost = 261 // 253 of a name, a colon and a port; an address in brackets is shorter
	maxPath = 4096
	maxType = 256
)

// The errors of messages, matched with errors.Is.
var (
	// ErrMessage: a field is not valid.
	ErrMessage = errors.New("message not valid")
	// ErrTooMany: the call sent [MaxMessages] already.
	ErrTooMany = errors.New("more messages than a call may send")
	// ErrFull: the space has no room for what is sent.
	ErrFull = errors.New("no room for more messages")
)

// Message is what is delivered: an HTTP request, in the terms of RFC 9110.
type Message struct {
	Host        string `json:"host"`                  // lower case, with a port where it is not the scheme's
	Method      string `json:"method"`                // "POST" or "PUT"
	Path        string `json:"path"`                  // begins with a slash; may have a query
	ContentType string `json:"contentType,omitempty"` // empty: none is sent
	Body        []byte `json:"body,omitempty"`
	Key         string `json:"key"` // tells messages to a host apart; see [Box.Send]
}

// check returns EFBIG for a body that is too long and [ErrMessage] for another
// field that is not valid. An empty key is.
func (m *Message) check() error {
	switch {
	case len(m.Body) > MaxBody:
		return capabilities.EFBIG
	case !only(m.Host, maxHost, hostByte) || m.Host == "",
		m.Method != "POST" && m.Method != "PUT",
		!only(m.Path, maxPath, pathByte) || !strings.HasPrefix(m.Path, "/"),
		!only(m.ContentType, maxType, textByte) || strings.TrimSpace(m.ContentType) != m.ContentType,
		!only(m.Key, MaxKey, visibleByte):
		return ErrMessage
	}
	return nil
}

// only reports whether s has at most n bytes, all of them of a sort.
func only(s string, n int, sort func(byte) bool) bool {
	if len(s) > n {
		return false
	}
	for i := range len(s) {
		if !sort(s[i]) {
			return false
		}
	}
	return true
}

func hostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(".-:[]", c) >= 0
}

// pathByte leaves out the fragment, which is never sent, and what some readers
// take for a slash.
func pathByte(c byte) bool { return visibleByte(c) && c != '#' && c != '\\' }

func textByte(c byte) bool { return visibleByte(c) || c == ' ' }

func visibleByte(c byte) bool { return c > ' ' && c <= '~' }
