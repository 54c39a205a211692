package capabilities

import "fmt"

// Mode says what becomes of a call that breaks its tool's claim.
type Mode uint8

// The modes. Enforce stops the guest in the act. Report lets it run on, records
// everything, and commits nothing, whatever the call does.
const (
	Enforce Mode = iota
	Report
)

// String returns "enforce" or "report".
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Report:
		return "report"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// MarshalText writes "enforce" or "report".
func (m Mode) MarshalText() ([]byte, error) {
	if m > Report {
		return nil, fmt.Errorf("mode %d: out of range", uint8(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads "enforce" or "report".
func (m *Mode) UnmarshalText(b []byte) error {
	for k := Enforce; k <= Report; k++ {
		if k.String() == string(b) {
			*m = k
			return nil
		}
	}
	return fmt.Errorf("mode %q: unknown", b)
}
