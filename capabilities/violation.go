package capabilities

import (
	"errors"
	"fmt"
)

// ErrViolation is matched by every [Violation] under errors.Is.
var ErrViolation = errors.New("claim broken")

// Phase says when a violation was seen.
type Phase string

// The phases of a call in which a claim can be seen to break.
const (
	PhaseOperation Phase = "operation"
	PhaseCommit    Phase = "commit"
	PhaseReplay    Phase = "replay"
)

// Violation is an attempt, or an effect a call would have left, that the
// tool's own claim excludes.
type Violation struct {
	Hint      Hint      `json:"hint"`
	Operation Operation `json:"operation"`
	Object    string    `json:"object"`
	Phase     Phase     `json:"phase"`
	// Detail says more for people: what was lost, and what would have allowed it. It
	// is sentences, the first without its capital, and holds nothing that the guest
	// wrote or named.
	Detail string `json:"detail,omitempty"`
}

// Error returns one line that names hint, operation and object.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s broken by %s of %q", v.Hint, v.Operation, v.Object)
}

// Is reports whether target is [ErrViolation].
func (v *Violation) Is(target error) bool { return target == ErrViolation }

// Denial is an attempt that the claim allows but that was not requested or not
// allowed. The guest got Errno and went on.
type Denial struct {
	Capability Capability `json:"capability"`
	Operation  Operation  `json:"operation"`
	Object     string     `json:"object"`
	Errno      Errno      `json:"errno"`
}
