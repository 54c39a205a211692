package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// printsEnvironment is a guest that answers with its environment.
func printsEnvironment() []byte {
	two := []byte{w.I32, w.I32}
	const at, list = 4096, 8192
	load32 := func(at int32) []byte { return w.Seq(w.I32Const(at), []byte{0x28, 2, 0}) }
	m := w.Module{
		Funcs: []w.Func{
			{Import: wasiModule, Name: "environ_get", Params: two, Results: []byte{w.I32}},
			{Import: wasiModule, Name: "fd_write", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
			{Import: wasiModule, Name: "environ_sizes_get", Params: two, Results: []byte{w.I32}},
			{Name: "_start", Body: w.Seq(
				w.I32Const(atFD), w.I32Const(atIovec+4), w.Call(2), w.Drop, // the size of the text is the vector's length
				w.I32Const(list), w.I32Const(at), w.Call(0), w.Drop,
				storeI32(atIovec, at),
				w.I32Const(1), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(1), w.Drop,
				load32(atFD), w.Drop,
			)},
		},
		Memory: [2]uint32{1, 0},
	}
	return m.Encode()
}

// TestEnvironment: a guest gets what is requested and given, sorted, and the
// same for every tool and caller.
func TestEnvironment(t *testing.T) {
	p := pack(printsEnvironment(), tool.Command, readOnly)
	p.Manifest.Requests.Env = []string{"ZONE", "LANG", "UNGIVEN"}
	d := p.Manifest.Tools[0]
	d.Name, d.Claim = "u", capabilities.Claim{}
	p.Manifest.Tools = append(p.Manifest.Tools, d)
	loaded := mustLoad(t, newEngine(t, Observer{}), p, Binding{Env: map[string]string{"ZONE": "Etc/UTC", "LANG": "a=b c"}})
	for _, r := range []Request{{Tool: "t"}, {Tool: "u"}, {Tool: "t", Principal: "alice"}} {
		got := loaded.Call(context.Background(), r)
		if got.Outcome != OK || textOf(t, got) != "LANG=a=b c\x00ZONE=Etc/UTC\x00" {
			t.Errorf("%+v: %s, %q, %v", r, got.Outcome, got.Output.Content, got.Err)
		}
	}
}

// TestStartUpSeesTheEnvironment of the calls: languages read it once.
func TestStartUpSeesTheEnvironment(t *testing.T) {
	two := []byte{w.I32, w.I32}
	m := w.Module{ // _initialize traps unless there is one variable
		Funcs: []w.Func{
			{Import: wasiModule, Name: "environ_sizes_get", Params: two, Results: []byte{w.I32}},
			{Name: "_initialize", Body: w.Seq(
				w.I32Const(atFD), w.I32Const(atFD+4), w.Call(0), w.Drop,
				w.I32Const(atFD), []byte{0x28, 2, 0}, w.I32Const(1), []byte{0x47, 0x04, 0x40}, w.Unreachable, []byte{0x0b})},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			{Name: "sandboxd_call", Params: two, Results: []byte{w.I64}, Body: w.I64Const(0)},
		},
		Memory: [2]uint32{1, 0},
	}
	p := pack(m.Encode(), tool.Reactor, readOnly)
	p.Manifest.Requests.Env = []string{"TZ"}
	e := newEngine(t, Observer{})
	loaded := mustLoad(t, e, p, Binding{Env: map[string]string{"TZ": ""}})
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if _, err := e.Load(context.Background(), p, Binding{}); err == nil {
		t.Error("a variable that was not given is there")
	}
}

// TestBindingsThatAreRefused: nothing that the operator writes is dropped.
func TestBindingsThatAreRefused(t *testing.T) {
	for name, b := range map[string]Binding{
		"variable that is not requested": {Env: map[string]string{"HOME": "/"}},
		"value with a NUL byte":          {Env: map[string]string{"TZ": "a\x00b"}},
		"malformed pattern":              {OptionalWrites: []string{"a["}},
		"managed volume not requested":   {Managed: map[string]string{"more": "shared"}},
		"managed volume with a path":     {Managed: map[string]string{"data": "../local/p"}},
		"empty managed volume":           {Managed: map[string]string{"data": ""}},
		"folder and managed volume":      {Managed: map[string]string{"data": "shared"}, Folders: map[string]string{"data": t.TempDir()}},
	} {
		p := pack(command("", "", nil), tool.Command, readOnly)
		p.Manifest.Requests.Env = []string{"TZ"}
		var load *LoadError
		if _, err := newEngine(t, Observer{}).Load(context.Background(), p, b); !errors.As(err, &load) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOptionalWrites: a read-only tool that tries what the operator lists is not
// stopped for it, and nothing is written.
func TestOptionalWrites(t *testing.T) {
	e := newEngine(t, Observer{})
	dir := t.TempDir()
	b := Binding{Folders: map[string]string{"data": dir}, OptionalWrites: []string{"ne*"}}
	loaded := mustLoad(t, e, pack(writesAndSmiles(), tool.Command, readOnly), b)
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != OK || len(r.Denials) != 1 || r.Denials[0].Errno != capabilities.EROFS || wrote(r.Effects) {
		t.Errorf("%s, denials %v, effects %v, %v", r.Outcome, r.Denials, r.Effects, r.Err)
	}
}

// withSchemas returns a package that writes and answers, with schemas on its tool.
func withSchemas(answer, input, output string) *tool.Package {
	p := pack(command("new", answer, w.Seq(open("new", oflagCreate, rightWrite), write(1, int32(len(answer))))), tool.Command, writer)
	p.Manifest.Tools[0].InputSchema = json.RawMessage(input)
	p.Manifest.Tools[0].OutputSchema = json.RawMessage(output)
	return p
}

// TestArgumentsAreHeldToTheSchema before anything runs, and the text says what
// to mend, on one line without hidden characters.
func TestArgumentsAreHeldToTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","maximum":9}},"required":["n"],"additionalProperties":false}`
	loaded, dir := load(t, newEngine(t, Observer{Acquired: func(string) { t.Error("a guest was started") }}), withSchemas("hi", schema, ""))
	for _, arguments := range []string{``, `{}`, `{"n":"one"}`, `{"n":10}`, `{"n":1,"n":1}`, `{"N":1}`, `{"n":1,"x\n\u001b[31m\u202e":2}`, `[1]`, `{"n":1}x`} {
		r := loaded.Call(context.Background(), Request{Tool: "t", Arguments: []byte(arguments)})
		var wrong *tool.ArgumentsError
		if r.Outcome != Refused || !errors.Is(r.Err, ErrArguments) || !errors.As(r.Err, &wrong) {
			t.Errorf("%s: %s, %v", arguments, r.Outcome, r.Err)
			continue
		}
		said := textOf(t, r)
		if !strings.HasPrefix(said, "t was not called: ") || strings.ContainsAny(said, "\n\x1b\u202e") {
			t.Errorf("%s: said %q", arguments, said)
		}
		t.Log(said)
	}
	untouched(t, dir)
}

// TestGuestsGetCanonicalArguments: what was judged is what is delivered.
func TestGuestsGetCanonicalArguments(t *testing.T) {
	m := w.Module{ // answers with what it reads
		Funcs: []w.Func{
			{Import: wasiModule, Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
			{Import: wasiModule, Name: "fd_write", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
			{Name: "_start", Body: w.Seq(
				storeI32(atIovec, 4096), storeI32(atIovec+4, 1000),
				w.I32Const(0), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atIovec+4), w.Call(0), w.Drop,
				w.I32Const(1), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(1), w.Drop)},
		},
		Memory: [2]uint32{1, 0},
	}
	loaded, _ := load(t, newEngine(t, Observer{}), pack(m.Encode(), tool.Command, readOnly))
	r := loaded.Call(context.Background(), Request{Tool: "t", Arguments: []byte("{ \"b\" : 1.0 ,\n \"a\": \"\\u0041\" }")})
	if got := textOf(t, r); r.Outcome != OK || !strings.Contains(got, `"arguments":{`) || !strings.Contains(got, `"b":1.0`) || !strings.Contains(got, `"a":"A"`) {
		t.Errorf("%s, %v, guest got %s", r.Outcome, r.Err, got)
	}
}

// TestResultsAreHeldToTheSchema before they are committed.
func TestResultsAreHeldToTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for answer, ok := range map[string]bool{
		`{"structuredContent":{"n":1}}`:                 true,
		`{"structuredContent":{"n":"secret"}}`:          false,
		`{"structuredContent":{}}`:                      false,
		`{"structuredContent":null,"content":[]}`:       false,
		`{"content":[{"type":"text","text":"secret"}]}`: false,
		`secret`: false,
	} {
		loaded, dir := load(t, newEngine(t, Observer{}), withSchemas(answer, `{"type":"object"}`, schema))
		r := loaded.Call(context.Background(), Request{Tool: "t"})
		if ok {
			if r.Outcome != OK || !r.Committed {
				t.Errorf("%s: %s, %v", answer, r.Outcome, r.Err)
			}
			continue
		}
		var wrong *tool.OutputError
		if r.Outcome != ToolError || r.Committed || !errors.As(r.Err, &wrong) {
			t.Errorf("%s: %s, committed %v, %v", answer, r.Outcome, r.Committed, r.Err)
		}
		said, err := json.Marshal(r.Output)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(said), "secret") || !strings.Contains(string(said), "t did not end well: its result does not keep to its own outputSchema.") {
			t.Errorf("%s: said %s", answer, said)
		}
		untouched(t, dir)
	}
	failed := `{"isError":true,"content":[{"type":"text","text":"no"}]}`
	loaded, _ := load(t, newEngine(t, Observer{}), withSchemas(failed, `{"type":"object"}`, schema))
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != ToolError || textOf(t, r) != "no" {
		t.Errorf("an error is held to the schema of results: %s, %q", r.Outcome, textOf(t, r))
	}
}

// TestPlainText is on one line, without hidden characters, of bounded length.
func TestPlainText(t *testing.T) {
	for in, want := range map[string]string{
		"/a/é b":            "/a/é b",
		"a\nb\x1b[0m\u202e": `a\u000ab\u001b[0m\u202e`,
		"\xff":              "\ufffd",
		"0123456789abcdefx": "0123456789abcdef…",
	} {
		if got := plain(in, 16); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "most")
		got := plain(in, most)
		if strings.IndexFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) >= 0 || len(got) > 10*most+len("…") {
			t.Fatalf("%q", got)
		}
	})
}
