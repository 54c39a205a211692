package sdk

import (
	"fmt"
	"reflect"
)

// Definition is a tool: what it says about itself and its handler. It is made
// by [Tool] and served once it was given to [Register].
type Definition struct {
	about   about
	input   *schema
	blank   func() any              // a pointer to arguments, to be filled in
	handler func(*Call, any) Result // gets what blank returned
	zero    func() Result           // of a handler that returns a zero value
}

// about is the definition as MCP carries it (schema.ts, Tool).
type about struct {
	Name         string       `json:"name"`
	Title        string       `json:"title,omitempty"`
	Description  string       `json:"description,omitempty"`
	InputSchema  *schema      `json:"inputSchema"`
	OutputSchema *schema      `json:"outputSchema,omitempty"`
	Annotations  *annotations `json:"annotations,omitempty"`
	// Not of MCP: the host's to read.
	ClientCapabilities []string `json:"clientCapabilities,omitempty"`
}

// annotations keep a hint that was not declared absent: MCP gives absence a
// meaning of its own.
type annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Option says something about a tool. A hint that is not given stays absent.
type Option func(*about)

// Title sets the name that people see.
func Title(s string) Option { return func(a *about) { a.Title = s } }

// Description says what the tool does and when to use it.
func Description(s string) Option { return func(a *about) { a.Description = s } }

// ReadOnly declares readOnlyHint: the tool changes nothing.
func ReadOnly(b bool) Option { return func(a *about) { a.hints().ReadOnly = &b } }

// Destructive declares destructiveHint; false: the tool only adds.
func Destructive(b bool) Option { return func(a *about) { a.hints().Destructive = &b } }

// Idempotent declares idempotentHint: a second call with the same arguments
// changes nothing further.
func Idempotent(b bool) Option { return func(a *about) { a.hints().Idempotent = &b } }

// OpenWorld declares openWorldHint; false: the tool talks to nothing outside
// its own volumes.
func OpenWorld(b bool) Option { return func(a *about) { a.hints().OpenWorld = &b } }

// ClientCapabilities declares what a client must be able to do for the tool to be
// called: some of "elicitation", "roots" and "sampling". The host refuses the
// calls of other clients before the tool runs. Another name, or one that is there
// twice, panics when the tool is made.
func ClientCapabilities(names ...string) Option {
	return func(a *about) { a.ClientCapabilities = append(a.ClientCapabilities, names...) }
}

// checkClient refuses what the host would refuse when it loads the package.
func (a *about) checkClient() error {
	seen := map[string]bool{}
	for _, name := range a.ClientCapabilities {
		switch name {
		case "elicitation", "roots", "sampling":
		default:
			return fmt.Errorf("client capability %q: want elicitation, roots or sampling", name)
		}
		if seen[name] {
			return fmt.Errorf("client capability %s: is there twice", name)
		}
		seen[name] = true
	}
	return nil
}

func (a *about) hints() *annotations {
	if a.Annotations == nil {
		a.Annotations = &annotations{}
	}
	return a.Annotations
}

// validName reports whether a tool's name is one that MCP recommends. A program
// pays for what is compiled when it starts, and a command starts for each call.
func validName(s string) bool {
	word, rest, ok := cutName([]byte(s+`"`), "")
	return ok && len(rest) == 1 && len(word) > 0 && len(word) <= 128
}

// Tool returns the tool of that name, answered by h. An error of h becomes a
// result with isError and the error's text. Tool panics where the name, one of
// the types or an option cannot be described; see the package documentation.
func Tool[In, Out any](name string, h func(*Call, In) (Out, error), opts ...Option) Definition {
	if !validName(name) {
		panic(fmt.Sprintf("sdk: tool name %q: want 1 to 128 of A-Z a-z 0-9 _ . -", name))
	}
	in, err := inputSchema(reflect.TypeFor[In]())
	if err != nil {
		panic(fmt.Sprintf("sdk: tool %s: input: %v", name, err))
	}
	out, err := outputSchema(reflect.TypeFor[Out]())
	if err != nil {
		panic(fmt.Sprintf("sdk: tool %s: output: %v", name, err))
	}
	d := Definition{about: about{Name: name, InputSchema: in, OutputSchema: out}, input: in}
	for _, o := range opts {
		o(&d.about)
	}
	if err := d.about.checkClient(); err != nil {
		panic(fmt.Sprintf("sdk: tool %s: %v", name, err))
	}
	d.blank = func() any { return new(In) }
	d.handler = func(c *Call, in any) Result {
		r, err := h(c, *in.(*In))
		if err != nil {
			return failure(err)
		}
		return resultOf(out, r)
	}
	d.zero = func() Result { return resultOf(out, *new(Out)) }
	return d
}
