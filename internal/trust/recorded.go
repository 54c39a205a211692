package trust

import (
	"slices"

	"github.com/sandboxd/sandboxd/tool"
)

// Recorded returns the record of a package that is trusted as it is: of its module,
// its manifest and, where c has them, its tools. ok is false where there is none, or
// one that says otherwise or cannot be read; [Store.Precheck] says which.
func (s *Store) Recorded(c Candidate) (r Record, ok bool) {
	if c.check() != nil {
		return Record{}, false
	}
	r, err := s.judge(c, len(c.definitions()) > 0)
	return r, err == nil
}

// Definitions returns the tools that were in force, sorted by name, their schemas
// with sorted keys.
func (r Record) Definitions() []tool.Definition {
	ds := make([]tool.Definition, 0, len(r.Tools))
	for _, p := range r.Tools {
		ds = append(ds, p.Definition())
	}
	return ds
}

// PinOf returns what a tool says of itself, its schemas as they are.
func PinOf(d tool.Definition) ToolPin {
	return ToolPin{
		Name: d.Name, Title: d.Title, Description: d.Description, Annotations: d.Claim, InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
		IdempotencyKeyArgument: d.IdempotencyKeyArgument, ClientCapabilities: d.ClientCapabilities,
	}
}

// Definition returns the tool that the pin is of.
func (p ToolPin) Definition() tool.Definition {
	return tool.Definition{
		Name: p.Name, Title: p.Title, Description: p.Description, Claim: p.Annotations, InputSchema: p.InputSchema, OutputSchema: p.OutputSchema,
		IdempotencyKeyArgument: p.IdempotencyKeyArgument, ClientCapabilities: p.ClientCapabilities,
	}
}

// Holds returns nil where the tools of c, which are known, are those of the record,
// in whatever order, else a [*ChangedError].
func (r Record) Holds(c Candidate) error {
	if err := c.complete(); err != nil {
		return err
	}
	now, err := newRecord(c)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(r.Tools, now.Tools, ToolPin.equal) {
		return newChangedError(r, now)
	}
	return nil
}
