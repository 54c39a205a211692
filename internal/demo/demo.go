// Package demo shows what sandboxd is for: it builds the bundled tool packages,
// honest ones and lying ones, serves them over MCP, calls them with a real MCP
// client, and compares files, keys and messages before and after each call.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

// Options of a run.
type Options struct {
	Out      io.Writer // the table, or the lines of JSON
	JSON     bool      // a JSON object a case, a line each
	Colour   bool      // colours in the table
	Width    int       // columns of the table; 0: 120
	Cache    string    // folder of built and compiled modules
	Progress io.Writer // says that something takes its time; nil: nowhere
	Observer runtime.Observer
	Strategy runtime.Strategy // default: that of the engine
}

// outcomeLoadError is the outcome of a case whose package did not load. The
// others are those of package runtime.
const outcomeLoadError runtime.Outcome = "load_error"

// Result is what a case came to. Its JSON form is a line of `demo --json`.
type Result struct {
	Package    string          `json:"package"`
	Tool       string          `json:"tool"`
	Hint       string          `json:"hint"`   // the one on trial; empty where none is
	Honest     *bool           `json:"honest"` // nil where no claim is on trial
	Attempted  string          `json:"attempted"`
	Outcome    runtime.Outcome `json:"outcome"`
	LeftBehind bool            `json:"left_behind"` // files, keys or messages differ from before the call

	claim     capabilities.Claim
	violation *capabilities.Violation
	replay    runtime.Replay
	detail    string   // how something was refused while the call went on, or its label
	changes   []string // what differs
	wrong     []string // why it did not end as it should
	callID    string
	told      string // the text that the client got
}

// OK reports whether the case ended as it should.
func (r *Result) OK() bool { return len(r.wrong) == 0 }

// Summary counts the cases of a run.
type Summary struct {
	Cases   int
	Passed  int // honest calls that went well
	Stopped int // lies that were stopped
	Held    int // no claim on trial: escapes, load errors, policy
	Wrong   int // cases that did not end as they should
}

func (s *Summary) add(r *Result) {
	s.Cases++
	switch {
	case !r.OK():
		s.Wrong++
	case r.Honest == nil:
		s.Held++
	case *r.Honest:
		s.Passed++
	default:
		s.Stopped++
	}
}

// Run runs all cases of all bundled packages. An error means that it could not
// be run to its end; cases that did not end as they should are counted.
func Run(ctx context.Context, o Options) (_ Summary, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	dir, err := os.MkdirTemp("", "sandboxd-demo-")
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newStage(ctx, dir, o)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var sum Summary
	var results []*Result
	for _, name := range guests.Names() {
		rs, err := s.runPackage(ctx, name)
		if errors.Is(err, build.ErrNoToolchain) {
			return sum, fmt.Errorf("demo: it builds its tools from source: %w: install Go 1.26 or later (https://go.dev/dl)", build.ErrNoToolchain)
		}
		if err != nil {
			return sum, fmt.Errorf("package %s: %w", name, err)
		}
		for _, r := range rs {
			sum.add(r)
			if o.JSON {
				if err := printLine(o.Out, r); err != nil {
					return sum, err
				}
			}
		}
		results = append(results, rs...)
	}
	if o.JSON {
		return sum, nil
	}
	return sum, printTable(o, s, results, sum)
}

func printLine(w io.Writer, r *Result) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", term.JSON(b))
	return err
}
