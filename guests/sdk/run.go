package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Call is one call of a tool. Its files are under the paths of its volumes;
// what it leaves outside of them and of /tmp is not kept.
type Call struct {
	Tool string // the name it was called by
	ID   string // unique to the call

	notes
}

// Logf writes a line to the log of the call (standard error). Clients never
// see it.
func (c *Call) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", c.Tool, fmt.Sprintf(format, args...))
}

// tools are the registered tools, in order. They are written in init functions
// only, before any call.
var tools []Definition

// Register makes tools callable. It belongs in an init function, and panics
// where two tools have one name.
func Register(ds ...Definition) {
	for _, d := range ds {
		if find(d.about.Name) != nil {
			panic(fmt.Sprintf("sdk: tool %s: registered twice", d.about.Name))
		}
		tools = append(tools, d)
	}
}

// find returns the tool of that name; nil where there is none.
func find(name string) *Definition {
	for i := range tools {
		if tools[i].about.Name == name {
			return &tools[i]
		}
	}
	return nil
}

// request is what the host sends; context may gain fields.
type request struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Context   struct {
		CallID string `json:"callId"`
	} `json:"context"`
}

// Run answers one request and returns the result as JSON. A request that
// cannot be understood gives a result with isError. A panic of the handler
// passes through, so that the host sees the program end.
func Run(req []byte) []byte {
	b, err := answer(req).json()
	if err != nil {
		b, _ = failure(fmt.Errorf("result: %w", err)).json()
	}
	return b
}

func answer(req []byte) Result {
	if d, in, id := quick(req); d != nil {
		return d.call(&Call{Tool: d.about.Name, ID: id}, in)
	}
	var r request
	if err := json.Unmarshal(req, &r); err != nil {
		return failure(fmt.Errorf("request: %w", err))
	}
	d := find(r.Tool)
	if d == nil {
		return failure(fmt.Errorf("tool %q: unknown", r.Tool))
	}
	in, err := d.decode(r.Arguments)
	if err != nil {
		return failure(err)
	}
	return d.call(&Call{Tool: r.Tool, ID: r.Context.CallID}, in)
}

// decode is the long way of quick.
func (d *Definition) decode(raw json.RawMessage) (any, error) {
	args, err := arguments(d.input, raw)
	if err != nil {
		return nil, err
	}
	in := d.blank()
	if err := json.Unmarshal(args, in); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return in, nil
}

// call has the handler answer.
func (d *Definition) call(c *Call, in any) Result {
	r := d.handler(c, in)
	if r.Content == nil {
		r.Content = []Content{}
	}
	return r
}

// Describe returns what the registered tools say about themselves, as the
// JSON object {"tools": [...]}.
func Describe() []byte {
	list := struct {
		Tools []about `json:"tools"`
	}{Tools: []about{}}
	for _, d := range tools {
		list.Tools = append(list.Tools, d.about)
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("sdk: description: %v", err))
	}
	return b
}

// Main answers the request on standard input and returns. A reactor never
// calls it. With the argument "describe" it prints the tools as they are written
// in the tool.yaml of a command instead.
func Main() {
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// manifest writes the tools as a block of tool.yaml: JSON is YAML too.
func manifest(b *bytes.Buffer) error {
	var d struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(Describe(), &d); err != nil {
		return err
	}
	b.WriteString("tools:\n  ")
	if err := json.Indent(b, d.Tools, "  ", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	return nil
}

func serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 1 && args[0] == "describe" {
		var b bytes.Buffer
		if err := manifest(&b); err != nil {
			return err
		}
		_, err := out.Write(b.Bytes())
		return err
	}
	req, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	_, err = out.Write(Run(req))
	return err
}
