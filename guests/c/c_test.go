//go:build !wasip1

// Package c_test holds the guests in C to what they say.
package c_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var rebuild = flag.Bool("rebuild", false, "build the modules again, with clang-19, and compare")

// modules returns the paths of the committed modules.
func modules(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/*.wasm")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}

func TestSmall(t *testing.T) {
	for _, m := range modules(t) {
		info, err := os.Stat(m)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() >= 40_000 {
			t.Errorf("%s: %d bytes, want less than 40,000", m, info.Size())
		}
	}
}

// The committed modules are what build.sh makes of the sources.
func TestRebuild(t *testing.T) {
	if !*rebuild {
		t.Skip("needs clang-19; run with -args -rebuild")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "./build.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	for _, m := range modules(t) {
		want, err := os.ReadFile(filepath.Join(dir, m))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(m)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: differs from what its source builds to; run guests/c/build.sh", m)
		}
	}
}

func load(t *testing.T, dir string) *runtime.Package {
	t.Helper()
	p, err := tool.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := runtime.New(t.Context(), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	loaded, err := e.Load(t.Context(), p, runtime.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// textOf returns the text of an answer that is one text.
func textOf(r *runtime.Result) string {
	var block struct{ Type, Text string }
	if len(r.Output.Content) != 1 || json.Unmarshal(r.Output.Content[0], &block) != nil || block.Type != "text" {
		return ""
	}
	return block.Text
}

// Both answer with any text, character by character.
func TestEcho(t *testing.T) {
	for _, dir := range []string{"echo", "echo-command"} {
		p := load(t, dir)
		call := func(t interface{ Fatalf(string, ...any) }, text string) {
			arguments, err := json.Marshal(map[string]string{"text": text})
			if err != nil {
				t.Fatalf("%v", err)
			}
			r := p.Call(context.Background(), runtime.Request{Tool: "echo", Arguments: arguments})
			if r.Outcome != runtime.OK || textOf(r) != text {
				t.Fatalf("%s: %q: %s, %v, %q", dir, text, r.Outcome, r.Err, textOf(r))
			}
		}
		call(t, strings.Repeat("\x00é\"", 100_000))
		rapid.Check(t, func(rt *rapid.T) { call(rt, rapid.String().Draw(rt, "text")) })
	}
}

// reactor is the module itself, for requests that the host would not send.
type reactor struct {
	module api.Module
}

func newReactor(t testing.TB) *reactor {
	t.Helper()
	ctx := context.Background()
	bin, err := os.ReadFile("echo/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, bin, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return &reactor{m}
}

func (r *reactor) call(t testing.TB, request string) string {
	t.Helper()
	ctx := context.Background()
	at, err := r.module.ExportedFunction("sandboxd_alloc").Call(ctx, uint64(len(request)))
	if err != nil {
		t.Fatal(err)
	}
	if !r.module.Memory().Write(uint32(at[0]), []byte(request)) {
		t.Fatal("buffer does not lie within the memory")
	}
	answer, err := r.module.ExportedFunction("sandboxd_call").Call(ctx, at[0], uint64(len(request)))
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	b, ok := r.module.Memory().Read(uint32(answer[0]>>32), uint32(answer[0]))
	if !ok {
		t.Fatal("answer does not lie within the memory")
	}
	return string(b)
}

func TestRequests(t *testing.T) {
	r := newReactor(t)
	ok := func(text string) string { return `{"content":[{"type":"text","text":` + text + `}]}` }
	bad := func(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}],"isError":true}` }
	const notJSON, missing, noTool = "request: not JSON", "arguments: text is missing", "request: tool is missing"
	for _, c := range []struct{ request, want string }{
		{`{"tool":"echo","arguments":{"text":"hello"}}`, ok(`"hello"`)},
		{" {\t\"arguments\" :\r\n{ \"x\" : [ 1 , { } ] , \"text\" : \"a\" } , \"tool\" : \"echo\" } ", ok(`"a"`)},
		{`{"context":{"text":"no","tool":"no"},"t\u006fol":"ec\u0068o","arguments":{"nested":{"text":"no"},"te\u0078t":"yes"}}`, ok(`"yes"`)},
		{`{"tool":"echo","arguments":{"text":"\"\\\/\b\f\n\r\t\u0000\u001F\u00e9\u20AC\ud83d\ude00"}}`, ok(`"\"\\/\u0008\u000c\u000a\u000d\u0009\u0000\u001f` + "é€😀" + `"`)},
		{`{"tool":"echo","arguments":{"text":"\ud83d \ude00\ud83dx\ud83d\u0041"}}`, ok(`"` + "\uFFFD \uFFFD\uFFFDx\uFFFDA" + `"`)},
		{`{"tool":"echo","arguments":{"text":"}],\"isError\":true"}}`, ok(`"}],\"isError\":true"`)},
		{`{"tool":"echo","arguments":{"tex":"a","textt":"b","Text":"c"}}`, bad(missing)},
		{`{"tool":"echo","arguments":{"text":1}}`, bad(missing)},
		{`{"tool":"echo","arguments":["text","a"]}`, bad(missing)},
		{`{"tool":"echo"}`, bad(missing)},
		{`{"tool":"other","arguments":{}}`, bad("tool: unknown")},
		{`{"tool":null}`, bad(noTool)},
		{`[]`, bad(noTool)},
		{`{"tool":"echo"} x`, bad(notJSON)},
		{`{"tool":"echo",}`, bad(notJSON)},
		{"{\"tool\":\"e\ncho\"}", bad(notJSON)},
		{`{"tool":"\x"}`, bad(notJSON)},
		{`{"tool":"echo","n":01}`, bad(notJSON)},
		{strings.Repeat("[", 101) + strings.Repeat("]", 101), bad(notJSON)},
		{``, bad(notJSON)},
	} {
		if got := r.call(t, c.request); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.request, got, c.want)
		}
	}
}

// A live instance that is never put back does not grow.
func TestLeaksNothing(t *testing.T) {
	r := newReactor(t)
	request := fmt.Sprintf(`{"tool":"echo","arguments":{"text":%q}}`, strings.Repeat("x", 10_000))
	r.call(t, request)
	before := r.module.Memory().Size()
	for range 1000 {
		r.call(t, request)
	}
	if after := r.module.Memory().Size(); after != before {
		t.Errorf("memory grew from %d to %d", before, after)
	}
}

// Requests are refused where encoding/json refuses them, and answered in JSON.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"tool":"echo","arguments":{"text":"\ud83d\ude00"}}`, `[1.5e-7,true,null,"\u00e9",{}]`, `-0`, `{"a":{"b":[]}}`, ` "`} {
		f.Add(s)
	}
	r := newReactor(f)
	f.Fuzz(func(t *testing.T, request string) {
		if !utf8.ValidString(request) || strings.Count(request, "[")+strings.Count(request, "{") > 100 {
			return
		}
		got := r.call(t, request)
		if !json.Valid([]byte(got)) {
			t.Errorf("%q: answer %q", request, got)
		}
		if refused := strings.Contains(got, "request: not JSON"); refused && json.Valid([]byte(request)) || !refused && !json.Valid([]byte(request)) {
			t.Errorf("%q: %s", request, got)
		}
	})
}

// dirty is a memory of which those pages are not zero that are added.
type dirty []byte

func (d dirty) Allocate(_, _ uint64) experimental.LinearMemory { return d }
func (d dirty) Reallocate(size uint64) []byte {
	if size > uint64(len(d)) {
		return nil
	}
	return d[:size]
}
func (d dirty) Free() {}

// The guest that looks for what calls leave finds memory that is not zero where it
// grows: that an engine hands out clean memory is not taken for granted.
func TestResidueSeesGrownMemory(t *testing.T) {
	for _, spoilt := range []bool{false, true} {
		bin, err := os.ReadFile("residue/residue.wasm")
		if err != nil {
			t.Fatal(err)
		}
		memory := make(dirty, 1<<20)
		if spoilt {
			memory[1<<20-100_001] = 1
		}
		ctx := experimental.WithMemoryAllocator(context.Background(), memory)
		r := wazero.NewRuntime(ctx)
		defer r.Close(ctx)
		if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
			t.Fatal(err)
		}
		keys := r.NewHostModuleBuilder("sandboxd_kv")
		keys.NewFunctionBuilder().WithFunc(func(_, _, _, _ uint32) uint32 { return 58 }).Export("put")
		keys.NewFunctionBuilder().WithFunc(func(_, _, _, _, _, _, _, _ uint32) uint32 { return 58 }).Export("scan")
		if _, err := keys.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
		m, err := r.InstantiateWithConfig(ctx, bin, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		if err != nil {
			t.Fatal(err)
		}
		answer := (&reactor{m}).call(t, `{"tool":"trade","arguments":{"seek":"","grow":true}}`)
		if strings.Contains(answer, "grown ") != spoilt {
			t.Errorf("spoilt %t: %s", spoilt, answer)
		}
	}
}
