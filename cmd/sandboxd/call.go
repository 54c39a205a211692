package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

type callCmd struct {
	bindings

	Package   string `required:"" short:"p" placeholder:"PACKAGE" help:"Folder or .wasm file of the package."`
	Tool      string `arg:"" optional:"" help:"The tool's name; without one the tools are listed."`
	Arguments string `arg:"" optional:"" name:"json" help:"The arguments, a JSON object; - reads them from standard input. Default: {}."`
	DryRun    bool   `help:"Show the effects, and texts with their differences; commit nothing."`
	JSON      bool   `name:"json" help:"Print the result as JSON."`
	Verbose   bool   `short:"v" help:"Show what the tool logged even after a good end, and the whole stack of a crash."`
}

func (callCmd) Help() string {
	return `Exit status: 0 the call went well, 3 it broke its tool's own annotation and was stopped, 4 the tool
reported an error, 5 what it used was changed meanwhile, 6 it ran into a limit or out of time, 1 it could not be
made. What the tool logged is shown after a call that did not end well, each line after "log: ".

Examples:

    sandboxd call --package guests/notes list_notes
    sandboxd call --package guests/notes add_note '{"title":"Milk","body":"two litres"}'
    sandboxd call --package guests/notes delete_note '{"note_id":1}' --dry-run
    sandboxd call --package guests/notes --volume data=./my-notes list_notes --json`
}

// Run makes one call.
func (c *callCmd) Run(a *app) (err error) {
	a.verbose = c.Verbose
	if c.Tool == "" {
		return c.listTools(a)
	}
	arguments, err := c.arguments(a.stdin)
	if err != nil {
		return err
	}
	s, err := a.open(c.bindings, c.Package)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p := s.pkg
	t, ok := p.Tool(c.Tool)
	if !ok {
		return fmt.Errorf("tool %s: package %s has no such tool; it has %s", c.Tool, p.Name(),
			names(p.Tools(), func(t *runtime.Tool) string { return t.Definition.Name }))
	}
	a.warnUnwritable(c.bindings, p.Source().Manifest.Name, t)
	request := runtime.Request{Tool: c.Tool, Arguments: arguments, DryRun: c.DryRun}
	if c.DryRun {
		request.Show = &undo.Show{}
	}
	r := p.Call(a.ctx, request)
	if r.Outcome == runtime.HostError {
		a.logger().Error("call ended in a fault of the host", "call", r.CallID, "error", r.Err)
	}
	if c.JSON {
		err = printJSON(a.stdout, r)
	} else {
		err = c.print(a, p.Source().Manifest.Requests, r)
	}
	if r.Outcome != runtime.OK || a.verbose {
		a.printLog(r.Stderr)
	}
	if r.Err != nil && a.verbose {
		fmt.Fprintf(a.stderr, "%s\n", term.Text(r.Err.Error()))
	}
	if !c.DryRun {
		s.host.Finish(a.ctx)
	}
	if s := exitStatus(r.Outcome); err == nil && s != 0 {
		return s
	}
	return err
}

// listTools answers a call without a tool: which there are.
func (c *callCmd) listTools(a *app) error {
	_, sources, err := a.packages(c.bindings, true, c.Package)
	if err != nil {
		return err
	}
	p := sources[0]
	ds, err := a.definitions(p)
	if err != nil {
		return err
	}
	return fmt.Errorf("call: no tool named; package %s has %s", p.Manifest.Name,
		names(ds, func(d tool.Definition) string { return d.Name }))
}

// arguments reads the JSON object of the command line or of standard input.
func (c *callCmd) arguments(stdin io.Reader) (json.RawMessage, error) {
	text := []byte(c.Arguments)
	if c.Arguments == "-" {
		var err error
		if text, err = io.ReadAll(stdin); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return json.RawMessage("{}"), nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, fmt.Errorf(`arguments %s: not a JSON object%s; want one such as '{"title":"Milk"}'`, term.Line(short(string(text))), where(err))
	}
	return text, nil
}

// where says what is wrong with a JSON text and at which byte, counted from 1.
func where(err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(": %v, at byte %d", s, s.Offset)
	}
	return ""
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

func exitStatus(o runtime.Outcome) status {
	switch o {
	case runtime.OK:
		return 0
	case runtime.Violation:
		return exitViolation
	case runtime.ToolError:
		return exitToolError
	case runtime.Conflict:
		return exitConflict
	case runtime.Limit, runtime.Timeout:
		return exitLimit
	case runtime.Refused, runtime.HostError:
		return exitError
	}
	return exitError
}

// printJSON prints a result as one line. Lists are there also where they are
// empty.
func printJSON(w io.Writer, r *runtime.Result) error {
	out := *r
	if out.Effects == nil {
		out.Effects = []capabilities.Effect{}
	}
	if out.Denials == nil {
		out.Denials = []capabilities.Denial{}
	}
	if out.Output.Content == nil {
		out.Output.Content = []json.RawMessage{}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", term.JSON(b))
	return err
}

// print prints what the tool said on stdout, and what became of the call on
// stderr.
func (c *callCmd) print(a *app, requests tool.Requests, r *runtime.Result) error {
	switch r.Outcome {
	case runtime.OK, runtime.ToolError:
		for _, raw := range r.Output.Content {
			if _, err := fmt.Fprintln(a.stdout, term.Text(strings.TrimSuffix(contentText(raw), "\n"))); err != nil {
				return err
			}
		}
		if len(r.Output.Content) == 0 && len(r.Output.StructuredContent) > 0 {
			if _, err := fmt.Fprintf(a.stdout, "%s\n", term.JSON(r.Output.StructuredContent)); err != nil {
				return err
			}
		}
	case runtime.Violation, runtime.Timeout, runtime.Limit, runtime.Conflict, runtime.Refused, runtime.HostError:
		for _, raw := range r.Output.Content {
			fmt.Fprintln(a.stderr, a.paint(a.stderr, term.Red, term.Text(contentText(raw))))
		}
		if m, ok := errors.AsType[*runtime.CapabilityError](r.Err); ok {
			fmt.Fprintf(a.stderr, "sandboxd call is no such client: serve the package to an MCP host that declares %s\n", strings.Join(m.Missing, ", "))
		}
	}
	if v := r.Violation; v != nil {
		fmt.Fprintf(a.stderr, "broken %s: %s %s\n", v.Hint, v.Operation, term.Line(v.Object))
	}
	if r.Diff == nil {
		fmt.Fprintf(a.stderr, "%s: %s%s\n", r.Outcome, saved(r, c.DryRun), effectList(r.Effects))
	} else {
		fmt.Fprintf(a.stderr, "%s: %s\n", r.Outcome, saved(r, c.DryRun))
		a.printEffects(r.Diff)
	}
	if saved(r, c.DryRun) == isSaved {
		fmt.Fprintf(a.stderr, "take it back with: sandboxd undo %s\n", r.CallID)
	}
	for _, d := range r.Denials {
		fmt.Fprintf(a.stderr, "denied %s: %s %s: %s\n", d.Capability, d.Operation, term.Line(d.Object), d.Errno)
	}
	for host := range unapproved(r.Denials, requests) {
		fmt.Fprintf(a.stderr, "the package requests %s under outbox, which is not approved: look at it with sandboxd approve --dry-run, and approve the package or name a file for the host under outbox in the configuration\n", term.Line(host))
	}
	return nil
}

// unapproved returns the hosts that messages were denied to although the package
// requests them, each once.
func unapproved(ds []capabilities.Denial, requests tool.Requests) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, host := range requests.Outbox {
			if slices.ContainsFunc(ds, func(d capabilities.Denial) bool { return d.Capability == capabilities.CapOutbox && d.Object == host }) && !yield(host) {
				return
			}
		}
	}
}

// contentText returns the text of a content block, or what kind of block it is.
func contentText(raw json.RawMessage) string {
	var c struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIMEType string `json:"mimeType"`
		URI      string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "[content that is not readable]"
	}
	if c.Type == "text" {
		return c.Text
	}
	return "[" + strings.Join(strings.Fields(c.Type+" "+c.MIMEType+" "+c.URI), " ") + "]"
}

const isSaved = "saved"

// saved says whether what the call did stays.
func saved(r *runtime.Result, dry bool) string {
	wrote := slices.ContainsFunc(r.Effects, func(e capabilities.Effect) bool { return e.Verb != capabilities.Read })
	switch {
	case r.Partial:
		return "a part may be saved"
	case r.Outcome == runtime.OK && !wrote:
		return "nothing changed"
	case r.Committed:
		return isSaved
	case dry && r.Outcome == runtime.OK:
		return "dry run, nothing saved"
	}
	return "nothing saved"
}

// effectList says in one line what the call did, or would have done.
func effectList(es []capabilities.Effect) string {
	const shown = 8
	var b strings.Builder
	for i, e := range es {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(es)-shown)
			break
		}
		fmt.Fprintf(&b, "; %s %s %s", e.Verb, e.Kind, term.Line(e.Object))
		if e.Bytes > 0 {
			fmt.Fprintf(&b, " (%d bytes)", e.Bytes)
		}
		if e.Detail != "" {
			fmt.Fprintf(&b, " [%s]", term.Line(e.Detail))
		}
	}
	return b.String()
}
