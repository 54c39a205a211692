package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ArgumentsError is what is wrong with the arguments of a call, where, and how
// it is mended. It may quote the arguments: clip and escape it for others than
// their sender.
type ArgumentsError struct {
	Path    string // JSON pointer (RFC 6901) into the arguments; empty for all of them
	Problem string
	Mend    string // what to send instead; may be empty
}

// Error returns one line: place, problem and mend.
func (e *ArgumentsError) Error() string {
	return located("arguments", e.Path, e.Problem, e.Mend)
}

// OutputError is where a tool's structured content does not keep to the tool's
// own outputSchema. It may quote what the guest wrote.
type OutputError struct {
	Path    string // JSON pointer (RFC 6901) into structuredContent; empty for all of it
	Problem string
}

// Error returns one line: place and problem.
func (e *OutputError) Error() string {
	return located("structuredContent", e.Path, e.Problem, "")
}

func located(root, path, problem, mend string) string {
	s := root + path + ": " + problem
	if mend != "" {
		s += "; " + mend
	}
	return s
}

// Schemas judges what goes into a tool and what comes out of it. It is safe for
// concurrent use.
type Schemas struct {
	input  *graph
	output *graph // nil: none
}

// NewSchemas compiles the schemas of a package's tools, once for all of their
// calls, and returns those of each definition, in order. Equal patterns are
// compiled once; all patterns together have at most 65,536 states.
func NewSchemas(definitions []Definition) ([]*Schemas, error) {
	shared := &patterns{}
	all := make([]*Schemas, 0, len(definitions))
	for _, d := range definitions {
		s, err := newSchemas(d, shared)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func newSchemas(d Definition, shared *patterns) (*Schemas, error) {
	in, err := newGraph(d.InputSchema, shared)
	if err != nil {
		return nil, fmt.Errorf("tool %s: inputSchema: %w", d.Name, err)
	}
	s := &Schemas{input: in}
	if len(d.OutputSchema) == 0 {
		return s, nil
	}
	if s.output, err = newGraph(d.OutputSchema, shared); err != nil {
		return nil, fmt.Errorf("tool %s: outputSchema: %w", d.Name, err)
	}
	return s, nil
}

// Arguments returns the arguments of a call as canonical JSON, where they fit
// the tool's inputSchema and every reader of JSON reads the same in them: keys
// that differ by case only, or from a declared property by case only, are
// refused. Numbers keep their text, defaults are not filled in. Empty arguments
// are {}. Errors are of type [*ArgumentsError].
func (s *Schemas) Arguments(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	v, canonical, f := readStrict(raw, true)
	if f == nil {
		if _, ok := v.(*objectValue); !ok {
			f = &fault{"", "is " + article(typeOf(v)), "send an object"}
		} else {
			f = s.input.judge(v, true)
		}
	}
	if f != nil {
		return nil, &ArgumentsError{Path: f.path, Problem: f.problem, Mend: f.mend}
	}
	return canonical, nil
}

// Output returns the structured content of a result as canonical JSON, where
// every reader of JSON reads the same in it and it keeps to the tool's
// outputSchema. A tool without one may have any, or none. Errors are of type
// [*OutputError].
func (s *Schemas) Output(structured json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(structured)) == 0 {
		if s.output == nil {
			return nil, nil
		}
		return nil, &OutputError{Problem: "is missing"}
	}
	v, canonical, f := readStrict(structured, false)
	if f == nil && s.output != nil {
		f = s.output.judge(v, false)
	}
	if f != nil {
		return nil, &OutputError{Path: f.path, Problem: f.problem}
	}
	return canonical, nil
}
