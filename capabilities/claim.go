package capabilities

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Tri is a declared boolean that may also be absent. The zero value is Unset,
// which MCP distinguishes from false: an absent hint takes its default.
type Tri uint8

// The three states of a declared hint.
const (
	Unset Tri = iota
	False
	True
)

// TriOf returns the Tri of a boolean that was declared.
func TriOf(b bool) Tri {
	if b {
		return True
	}
	return False
}

// Or returns the declared value, or def when the hint was not declared.
func (t Tri) Or(def bool) bool {
	switch t {
	case True:
		return true
	case False:
		return false
	case Unset:
		return def
	}
	panic(fmt.Sprintf("capabilities: tri %d", uint8(t)))
}

// String returns "true", "false" or "unset".
func (t Tri) String() string {
	switch t {
	case True:
		return "true"
	case False:
		return "false"
	case Unset:
		return "unset"
	}
	return fmt.Sprintf("tri(%d)", uint8(t))
}

// MarshalJSON writes true, false or null.
func (t Tri) MarshalJSON() ([]byte, error) {
	switch t {
	case True:
		return []byte("true"), nil
	case False:
		return []byte("false"), nil
	case Unset:
		return []byte("null"), nil
	}
	return nil, fmt.Errorf("tri %d: out of range", uint8(t))
}

// UnmarshalJSON reads true, false or null; anything else is an error.
func (t *Tri) UnmarshalJSON(b []byte) error {
	var v *bool
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("hint: %w", err)
	}
	*t = Unset
	if v != nil {
		*t = TriOf(*v)
	}
	return nil
}

// Hint names one of the four behavioural annotations of MCP.
type Hint uint8

// The hints, in the order in which MCP lists them. The zero Hint is none.
const (
	ReadOnlyHint Hint = iota + 1
	DestructiveHint
	IdempotentHint
	OpenWorldHint
)

// Hints returns the four hints in the order in which MCP lists them.
func Hints() iter.Seq[Hint] {
	return func(yield func(Hint) bool) {
		for h := ReadOnlyHint; h <= OpenWorldHint; h++ {
			if !yield(h) {
				return
			}
		}
	}
}

// String returns the name MCP gives the hint, for example "readOnlyHint".
func (h Hint) String() string {
	switch h {
	case ReadOnlyHint:
		return "readOnlyHint"
	case DestructiveHint:
		return "destructiveHint"
	case IdempotentHint:
		return "idempotentHint"
	case OpenWorldHint:
		return "openWorldHint"
	}
	return fmt.Sprintf("hint(%d)", uint8(h))
}

// MarshalText writes the name MCP gives the hint.
func (h Hint) MarshalText() ([]byte, error) {
	if h < ReadOnlyHint || h > OpenWorldHint {
		return nil, fmt.Errorf("hint %d: out of range", uint8(h))
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads the name MCP gives a hint, spelled exactly.
func (h *Hint) UnmarshalText(b []byte) error {
	for k := range Hints() {
		if k.String() == string(b) {
			*h = k
			return nil
		}
	}
	return fmt.Errorf("hint %q: unknown", b)
}

// Claim is what a tool's author declared, hint by hint, absent ones included.
// The zero Claim declares nothing.
type Claim struct {
	ReadOnly    Tri `json:"readOnlyHint"`
	Destructive Tri `json:"destructiveHint"`
	Idempotent  Tri `json:"idempotentHint"`
	OpenWorld   Tri `json:"openWorldHint"`
}

// Effective returns the claim with the defaults of the MCP specification
// filled in: readOnly false, destructive true, idempotent false, openWorld
// true. Under readOnly the destructive and idempotent hints say nothing; what
// enforcing read-only implies is returned for them: false and true.
func (c Claim) Effective() Effective {
	e := Effective{
		ReadOnly:    c.ReadOnly.Or(false),
		Destructive: c.Destructive.Or(true),
		Idempotent:  c.Idempotent.Or(false),
		OpenWorld:   c.OpenWorld.Or(true),
	}
	if e.ReadOnly {
		e.Destructive, e.Idempotent = false, true
	}
	return e
}

// Contradictory reports whether the claim says both read-only and destructive.
// The tighter one, read-only, is enforced; users are warned.
func (c Claim) Contradictory() bool {
	return c.ReadOnly == True && c.Destructive == True
}

// Effective holds the four hints as they are enforced, none absent. The zero
// value is the strictest for the network and for loss, and grants writing to
// nobody who does not also hold a volume.
type Effective struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Listed returns the values that may be advertised to clients: never a safer
// one than what the given judges enforce. Without a judge for a hint, the
// pessimistic value is listed.
func (e Effective) Listed(j Judges) Effective {
	if e.ReadOnly {
		return e
	}
	if !j.Additive {
		e.Destructive = true
	}
	if !j.Replay {
		e.Idempotent = false
	}
	return e
}

// Judges says which claims about a whole call can be enforced when it commits.
// The zero value has no judge: neither claim is enforced, so neither is listed.
type Judges struct {
	Additive bool // destructiveHint=false is judged on the final tree
	Replay   bool // idempotentHint=true is judged by a second run
}
