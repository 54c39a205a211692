package verify

import (
	"encoding/json"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Verdict is what a hint of a tool came to.
type Verdict string

// The verdicts. Only [Broken] is a lie.
const (
	Proved       Verdict = "proved"        // it holds whatever the code does: nothing is requested by which it could be otherwise
	Observed     Verdict = "observed"      // every call kept to it
	Broken       Verdict = "broken"        // a call did not
	UnderClaimed Verdict = "under-claimed" // the tool is safer than it declares
	NotChecked   Verdict = "not checked"   // no call says anything about it
)

// Report is what verifying a package came to. Its JSON form is documented in
// docs/verify.md.
type Report struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Honest  bool   `json:"honest"` // no claim is broken
	Cases   string `json:"cases"`  // the cases file; empty: none
	// Relaxations are those that the package requests, all of which were in force.
	Relaxations []string `json:"relaxations"`
	Tools       []Tool   `json:"tools"`
	// Ran counts the calls in which a tool's code ran.
	Ran int `json:"ran"`
}

// Tool is what one tool came to.
type Tool struct {
	Name  string   `json:"name"`
	Calls []Called `json:"calls"`
	Hints []Hint   `json:"hints"` // all four, in the order in which MCP lists them
	// Suggested are annotations that are not broken and claim all that was seen; nil:
	// the declared ones are these.
	Suggested *capabilities.Claim `json:"suggested"`

	because map[capabilities.Hint]string // why a hint is suggested, where that is not the reason of its verdict
}

// Called is one call that was made.
type Called struct {
	ID        string          `json:"id"`
	Arguments json.RawMessage `json:"arguments"`
	Note      string          `json:"note,omitempty"`
	Outcome   string          `json:"outcome"`           // of a call, or "not made"
	Problem   string          `json:"problem,omitempty"` // why it says nothing
}

// Hint is what one hint of a tool came to.
type Hint struct {
	Hint      capabilities.Hint `json:"hint"`
	Declared  capabilities.Tri  `json:"declared"`  // null: left out
	Effective bool              `json:"effective"` // what that means
	Verdict   Verdict           `json:"verdict"`
	Calls     int               `json:"calls"` // those that say something about it
	Reason    string            `json:"reason"`
	// TimeDependent is set where only a run 25 hours later did something further.
	TimeDependent bool `json:"timeDependent"`
	// Relaxations are those without which the claim would have been broken.
	Relaxations    []string        `json:"relaxations"`
	Counterexample *Counterexample `json:"counterexample"` // the first one; nil: none
}

// Counterexample is a call that broke a claim.
type Counterexample struct {
	Call      string                 `json:"call"` // its ID
	Arguments json.RawMessage        `json:"arguments"`
	Operation capabilities.Operation `json:"operation"`
	Object    string                 `json:"object"`
	Phase     capabilities.Phase     `json:"phase"`
	Detail    string                 `json:"detail,omitempty"`
	Command   string                 `json:"command"` // makes the call again, for a POSIX shell
}

// Broken returns how many claims are broken.
func (r *Report) Broken() int { return r.Count()[Broken] }

// Count returns how many hints have which verdict.
func (r *Report) Count() map[Verdict]int {
	n := map[Verdict]int{}
	for _, t := range r.Tools {
		for _, h := range t.Hints {
			n[h.Verdict]++
		}
	}
	return n
}
