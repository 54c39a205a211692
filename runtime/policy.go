package runtime

import (
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Policy is how the operator has a tool's claim held against it. Its JSON form is
// what clients are told.
type Policy struct {
	// Relaxations are the exceptions that are approved, as `sandboxd inspect` shows
	// them, and the operator's own. A tool whose claim they do not touch has none.
	Relaxations []string `json:"-"`
	// Replay is how often calls of an idempotent tool are run a second time; empty:
	// the tool claims nothing of the sort.
	Replay        string `json:"replay,omitempty"`
	CommitOnError bool   `json:"commitOnError,omitempty"` // effects are saved although the result says isError
}

// policyOf returns the policy of a tool with that effective claim.
func policyOf(b Binding, name string, e capabilities.Effective) Policy {
	p := Policy{Relaxations: []string{}, CommitOnError: !e.ReadOnly && slices.Contains(b.CommitOnError, name)}
	additive, idempotent := !e.ReadOnly && !e.Destructive, !e.ReadOnly && e.Idempotent
	if idempotent {
		p.Replay = replayPolicy(b.Replay, name).String()
	}
	relaxed := b.Relaxations
	if !additive { // the other exceptions are about losses
		relaxed.History, relaxed.Transitions, relaxed.Recoverable = nil, nil, 0
	}
	if additive || idempotent {
		p.Relaxations = append(p.Relaxations, relaxed.Lines()...)
		for _, pattern := range b.VolatileFiles {
			p.Relaxations = append(p.Relaxations, "volatile file "+pattern)
		}
	}
	if additive {
		for _, pattern := range b.AppendOnly {
			p.Relaxations = append(p.Relaxations, "append-only "+pattern)
		}
	}
	return p
}

// String returns "always", "sample" or "off".
func (p ReplayPolicy) String() string {
	switch p {
	case ReplayAlways:
	case ReplaySample:
		return "sample"
	case ReplayOff:
		return "off"
	}
	return "always"
}
