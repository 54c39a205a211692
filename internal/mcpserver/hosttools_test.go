package mcpserver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// preview previews a call.
func (u *user) preview(name string, arguments map[string]any) *answered {
	u.t.Helper()
	return u.call(mcpserver.ToolPreview, map[string]any{"tool": name, "arguments": arguments}, nil)
}

// fits holds an answer against the output schema that its tool is listed with.
func (u *user) fits(name string, a *answered) {
	u.t.Helper()
	list, err := u.session.ListTools(u.t.Context(), nil)
	if err != nil {
		u.t.Fatal(err)
	}
	for _, tl := range list.Tools {
		if tl.Name != name {
			continue
		}
		in, _ := json.Marshal(tl.InputSchema)
		out, _ := json.Marshal(tl.OutputSchema)
		structured, _ := json.Marshal(a.structured)
		schemas, err := tool.NewSchemas([]tool.Definition{{Name: "t", InputSchema: in, OutputSchema: out}})
		if err != nil {
			u.t.Fatal(err)
		}
		if _, err := schemas[0].Output(structured); err != nil || a.structured == nil {
			u.t.Errorf("%s: %v: %s", name, err, structured)
		}
		return
	}
	u.t.Errorf("no tool %s", name)
}

// A preview shows what a call would leave, and leaves nothing.
func TestPreview(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		u.does("put", put("a", "one"))
		for name, c := range map[string]struct {
			tool      string
			arguments map[string]any
			outcome   string
			verb      string // of the only effect; empty: there is none
			says      []string
			isError   bool
		}{
			"honest":    {"add", put("a", "two"), "ok", "append", []string{"+two\n", " one\n", "It would leave:", "Lines: 2"}, false},
			"new":       {"put", put("b", "x"), "ok", "create", []string{"--- /dev/null\n", "+x\n"}, false},
			"loses":     {"fill", put("a", "two"), "violation", "overwrite", []string{"-one\n", "+two\n", "which would not be saved"}, false},
			"repeats":   {"add_once", put("a", "two"), "violation", "append", []string{"idempotentHint: true", "+two\n"}, false},
			"fails":     {"fail", put("a", "two"), "tool_error", "overwrite", []string{"no more ink"}, false},
			"reads":     {"read", map[string]any{"file": "a"}, "ok", "", []string{"It would answer: one", "change nothing"}, false},
			"arguments": {"put", map[string]any{"file": 1}, "refused", "", []string{"argument"}, true},
			"no tool":   {"nothing", map[string]any{}, "refused", "", []string{`"nothing"`}, true},
			"host tool": {mcpserver.ToolUndo, map[string]any{"callId": "x"}, "refused", "", []string{"No package here"}, true},
		} {
			a := u.preview(c.tool, c.arguments)
			u.fits(mcpserver.ToolPreview, a)
			effects, _ := a.structured["effects"].([]any)
			if a.isError != c.isError || a.structured["outcome"] != c.outcome || (c.verb != "") != (len(effects) == 1) {
				t.Errorf("%s: %+v", name, a)
				continue
			}
			if c.verb != "" && effects[0].(map[string]any)["verb"] != c.verb {
				t.Errorf("%s: %v", name, effects)
			}
			if (c.outcome == "violation") != (a.structured["violation"] != nil) {
				t.Errorf("%s: violation %v", name, a.structured["violation"])
			}
			for _, want := range c.says {
				if !strings.Contains(a.text, want) {
					t.Errorf("%s: no %q in %q", name, want, a.text)
				}
			}
		}
		if got := u.read("a"); got != "one\n" {
			t.Errorf("it left %q", got)
		}
		if a := u.call("read", map[string]any{"file": "b"}, nil); !a.isError {
			t.Errorf("it left %q", a.text)
		}
	})
}

// A preview takes no idempotency key, and gives none away.
func TestPreviewLeavesKeyFree(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		arguments := map[string]any{"file": "a", "text": "x", "request": "r"}
		u.preview("add", arguments)
		if a := u.call("add", arguments, nil); a.isError || a.call.Remembered || !a.call.Committed {
			t.Errorf("%+v", a)
		}
		if a := u.preview("add", arguments); a.structured["outcome"] != "ok" || !strings.Contains(a.text, "+x") {
			t.Errorf("a preview shows what was remembered: %+v", a)
		}
	})
}

// changes lists what is kept.
func (u *user) changes(arguments map[string]any) []map[string]any {
	u.t.Helper()
	a := u.does(mcpserver.ToolChanges, arguments)
	u.fits(mcpserver.ToolChanges, a)
	var out []map[string]any
	for _, c := range a.structured["changes"].([]any) {
		out = append(out, c.(map[string]any))
	}
	return out
}

// undo takes back a call.
func (u *user) undo(id any) *answered {
	u.t.Helper()
	a := u.call(mcpserver.ToolUndo, map[string]any{"callId": id}, nil)
	u.fits(mcpserver.ToolUndo, a)
	return a
}

// What a call saved is listed, taken back once, and what was taken back can be put
// back.
func TestUndoAndChanges(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		if list := u.changes(nil); len(list) != 0 {
			t.Fatalf("%v", list)
		}
		first := u.does("put", put("a", "one")).call.ID
		second := u.does("put", put("a", "two")).call.ID
		list := u.changes(nil)
		if len(list) != 2 || list[0]["callId"] != second || list[1]["callId"] != first || list[0]["tool"] != "put" || list[0]["undoable"] != true {
			t.Fatalf("%v", list)
		}
		if list := u.changes(map[string]any{"limit": 1}); len(list) != 1 || list[0]["callId"] != second {
			t.Errorf("limit: %v", list)
		}
		a := u.undo(first)
		changed, _ := a.structured["changed"].([]any)
		if !a.isError || a.structured["undone"] != false || len(changed) != 1 || changed[0].(map[string]any)["object"] != "/data/a" {
			t.Errorf("undo of what changed since: %+v", a)
		}
		undo := u.undo(second)
		if undo.isError || !undo.call.Committed || undo.structured["undoneBy"] != undo.call.ID || u.read("a") != "one\n" {
			t.Fatalf("undo: %+v, %q", undo, u.read("a"))
		}
		if a := u.undo(second); !a.isError || !strings.Contains(a.text, "undone already") || u.read("a") != "one\n" {
			t.Errorf("undo twice: %+v", a)
		}
		list = u.changes(nil)
		if len(list) != 3 || list[0]["undoes"] != second || list[1]["undoneBy"] != undo.call.ID || list[1]["undoable"] != false {
			t.Errorf("%v", list)
		}
		if a := u.undo(undo.call.ID); a.isError || u.read("a") != "two\n" {
			t.Errorf("undo of the undo: %+v", a)
		}
		if a := u.undo(second); a.isError || u.read("a") != "one\n" {
			t.Errorf("undo after that: %+v", a)
		}
		for _, id := range []any{"NONE", strings.Repeat("x", 128), "a/b\x00"} {
			if a := u.undo(id); !a.isError || !strings.Contains(a.text, "no record of it") {
				t.Errorf("%q: %+v", id, a)
			}
		}
	})
}

// Nobody reaches what another principal did, or what a package does that is not
// served here.
func TestHostToolsReachNoOther(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	other := d.load(t, runtime.Binding{As: "other"})
	elsewhere, err := mcpserver.New(mcpserver.Options{Packages: mcpserver.Packages(other), HostTools: allHostTools, Host: d.engine})
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := mcpserver.New(mcpserver.Options{HostTools: allHostTools, Host: d.engine})
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{"other": d.listen(t, elsewhere), "none": d.listen(t, nothing)}
	inBothEras(t, d, func(t *testing.T, u *user) {
		me := map[string]string{legacy: "ada", modern: "bea"}[t.Name()[len(t.Name())-len(legacy):]]
		id := u.does("put", put("a", "one")).call.ID
		for name, v := range map[string]*user{
			"another principal":       d.user(t, d.url, modern, "eve"),
			"a server of another":     d.user(t, urls["other"], modern, me),
			"a server without any":    d.user(t, urls["none"], modern, me),
			"another's, before 2026":  d.user(t, d.url, legacy, "eve"),
			"another's, another one.": d.user(t, urls["other"], legacy, "eve"),
		} {
			if a := v.undo(id); !a.isError || !strings.Contains(a.text, "no record of it") || strings.Contains(a.text, "/data") {
				t.Errorf("%s: undo: %+v", name, a)
			}
			if list := v.changes(nil); len(list) != 0 {
				t.Errorf("%s: changes: %v", name, list)
			}
		}
		if a := d.user(t, urls["none"], modern, me).preview("put", put("a", "x")); !a.isError {
			t.Errorf("preview of a package that is not served: %+v", a)
		}
		if u.read("a") != "one\n" || u.undo(id).isError {
			t.Error("it was undone by another")
		}
	})
}

// The host's own tools are served where they are asked for, under names that no
// package can take.
func TestHostToolNames(t *testing.T) {
	p := func(name string, tools ...string) *fakePackage {
		p := &fakePackage{name: name, own: name, call: newOutcomes().call}
		for _, n := range tools {
			p.tools = append(p.tools, newTool(n, capabilities.Claim{}))
		}
		return p
	}
	renamed := p("sandboxd", "undo")
	renamed.own = "other"
	for name, ps := range map[string][]mcpserver.Package{
		"taken":          {p("a", "sandboxd_undo")},
		"in other case":  {p("a", "Sandboxd_Anything")},
		"by its package": {p("a", "undo"), renamed},
	} {
		_, err := mcpserver.New(mcpserver.Options{Packages: ps})
		if e, ok := errors.AsType[*mcpserver.ReservedError](err); !ok || e.Package == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mcpserver.New(mcpserver.Options{HostTools: []string{mcpserver.ToolUndo}}); err == nil {
		t.Error("undo without a host: no error")
	}
	if _, err := mcpserver.New(mcpserver.Options{HostTools: []string{"sandboxd_confirm"}}); err == nil {
		t.Error("a tool that the host has not: no error")
	}
	s := newServer(t, newOutcomes())
	c := connect(t, s, modern)
	preview := json.RawMessage(`{"tool":"ok"}`)
	if _, err := c.Call(t.Context(), mcpserver.ToolPreview, preview); err == nil {
		t.Error("served though nobody asked for it")
	}
	if err := s.Replace([]mcpserver.Package{newOutcomes()}, mcpserver.ToolPreview); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Call(t.Context(), mcpserver.ToolPreview, preview); err != nil || r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	for _, name := range []string{"host_error", "nil_result", "panics", "unknown_outcome"} {
		if _, err := c.Call(t.Context(), mcpserver.ToolPreview, json.RawMessage(`{"tool":"`+name+`"}`)); err == nil || strings.Contains(err.Error(), errHost.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Replace([]mcpserver.Package{newOutcomes()}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), mcpserver.ToolPreview, preview); err == nil {
		t.Error("still served")
	}
}
