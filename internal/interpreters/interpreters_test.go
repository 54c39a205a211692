package interpreters

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

var (
	folder  = flag.String("interpreters", "", "the folder that guests/interpreters.sh filled")
	wasmOpt = flag.String("wasmopt", asyncify.Auto, "the wasm-opt to use")
	calls   = flag.Int("calls", 200, "calls of each kind")
)

// language is an interpreter with the package in guests that uses it.
type language struct {
	name, module string
	script       string // the file of the script
	// head is a script's beginning and tail its end; tool is a function of the name,
	// with a body.
	head, tail string
	tool       func(name, body string) string
}

var languages = []language{
	{
		name: "javascript", module: "qjs.wasm", script: "main.js",
		head: "let count = 0; const table = []; for (let i = 0; i < 20000; i++) table.push({i, s: 'item ' + i});\nexport default {\n", tail: "};\n",
		tool: func(name, body string) string { return name + "(args) {" + body + "},\n" },
	},
	{
		name: "python", module: "python.wasm", script: "main.py",
		head: "import json, re, datetime, random, sys, time, uuid\nsys.path.insert(0, '/package')\nimport sandboxd\n" +
			"count = 0\ntable = [{'i': i, 's': f'item {i}'} for i in range(20000)]\n", tail: "sandboxd.serve()\n",
		tool: func(name, body string) string {
			return "@sandboxd.tool\ndef " + name + "(**args):\n    global count\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n"
		},
	},
}

// shared is what all tests of a run share: the machine code of the interpreters.
var shared = sync.OnceValues(func() (string, error) {
	return filepath.Join(*folder, "cache"), os.MkdirAll(filepath.Join(*folder, "cache"), 0o700)
})

// engine returns an engine that can leave programs, or one that makes new instances.
func engine(t testing.TB, s runtime.Strategy) *runtime.Engine {
	t.Helper()
	if *folder == "" {
		t.Skip("no -interpreters")
	}
	cache, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	opt, err := asyncify.New(asyncify.Options{Program: *wasmOpt, Cache: filepath.Join(cache, "asyncify")})
	if err != nil {
		t.Fatal(err)
	}
	e, err := runtime.New(context.Background(), runtime.Options{
		Store: memstore.New(), Strategy: s, Cache: filepath.Join(cache, "compiled"), Rewrite: opt.Rewrite,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// source reads the package in guests, with the interpreter beside it.
func (l language) source(t testing.TB) *tool.Package {
	t.Helper()
	if *folder == "" {
		t.Skip("no -interpreters")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "guests", l.name))); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, l.module)
	if err := os.RemoveAll(module); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(*folder, l.module), module); err != nil {
		b, err := os.ReadFile(filepath.Join(*folder, l.module))
		if err == nil {
			err = os.WriteFile(module, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := tool.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// with returns the package with a script of other tools, by the bodies of their
// functions.
func (l language) with(t testing.TB, bodies map[string]string) *tool.Package {
	t.Helper()
	p := l.source(t)
	p.Files = maps.Clone(p.Files)
	p.Manifest.Tools = nil
	var text strings.Builder
	text.WriteString(l.head)
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		text.WriteString(l.tool(name, bodies[name]))
		p.Manifest.Tools = append(p.Manifest.Tools, tool.Definition{Name: name, InputSchema: []byte(`{"type":"object"}`)})
	}
	text.WriteString(l.tail)
	p.Files[l.script] = []byte(text.String())
	return p
}

func load(t testing.TB, e *runtime.Engine, p *tool.Package) *runtime.Package {
	t.Helper()
	loaded, err := e.Load(context.Background(), p, runtime.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// told calls a tool and returns what it answers, or how it ended.
func told(t testing.TB, p *runtime.Package, name, arguments string) string {
	t.Helper()
	r := p.Call(context.Background(), runtime.Request{Tool: name, Arguments: []byte(arguments)})
	if r.Outcome != runtime.OK && r.Outcome != runtime.ToolError {
		return fmt.Sprintf("%s: %v", r.Outcome, r.Err)
	}
	text := string(r.Outcome) + ":"
	for _, c := range r.Output.Content {
		text += " " + string(c)
	}
	return text + " " + string(r.Output.StructuredContent)
}

func eachLanguage(t *testing.T, f func(t *testing.T, l language)) {
	if *folder == "" {
		t.Skip("no -interpreters")
	}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) { f(t, l) })
	}
}

// TestGuests: the packages in guests answer the same from an image as from new
// instances.
func TestGuests(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		left, anew := load(t, engine(t, runtime.StrategyImage), l.source(t)), load(t, engine(t, runtime.StrategyNew), l.source(t))
		if k, why := left.Kind(); k != runtime.KindStdin {
			t.Fatalf("kind %s, %s: %v", k, why, left.Because())
		}
		for _, c := range [][2]string{
			{"count_words", `{"text":"To be or not to be, naïve"}`},
			{"add_line", `{"line":"x"}`},
			{"add_line", `{"line":"x\ny"}`},
		} {
			want := told(t, anew, c[0], c[1])
			for range 20 {
				if got := told(t, left, c[0], c[1]); got != want {
					t.Errorf("%s: %s, a new instance says %s", c[0], got, want)
				}
			}
		}
		rolls := map[string]bool{}
		for range 60 {
			rolls[told(t, left, "roll_dice", `{"count":30}`)] = true
		}
		if len(rolls) != 60 {
			t.Errorf("%d different rolls of 60", len(rolls))
		}
	})
}

// bodies are tools that do what an image may be wrong about, by language.
var bodies = map[string]map[string]string{
	"javascript": {
		"sum":     "count++; return String(table.reduce((a, x) => a + x.i, 0) + count);",
		"change":  "table.length = 10; count = 99; Array.prototype.mine = 1; return 'changed';",
		"grow":    "const a = []; for (let i = 0; i < 300000; i++) a.push('x' + i); return String(a.length);",
		"deep":    "const f = n => n ? 1 + f(n - 1) : 0; return String(f(800));",
		"forever": "const f = n => 1 + f(n + 1); try { return String(f(0)); } catch (e) { return e.name; }",
		"fails":   "throw new RangeError('why');",
		"spins":   "for (;;) count++;",
		"floods":  "return 'x'.repeat(2000000);",
		"chance":  "return String(Math.random());",
		"now":     "return String(Math.round(Date.now() / 86400000));",
	},
	"python": {
		"sum":     "count += 1\nreturn str(sum(x['i'] for x in table) + count)",
		"change":  "del table[10:]\ncount = 99\njson.mine = 1\nreturn 'changed'",
		"grow":    "return str(len(['x' + str(i) for i in range(300000)]))",
		"deep":    "f = lambda n: 1 + f(n - 1) if n else 0\nreturn str(f(500))",
		"forever": "f = lambda n: 1 + f(n + 1)\ntry:\n    return str(f(0))\nexcept RecursionError as e:\n    return type(e).__name__",
		"fails":   "raise ValueError('why')",
		"spins":   "while True: count += 1",
		"floods":  "return 'x' * 2000000",
		"leaves":  "sys.exit(7)",
		"chance":  "return str(random.random()) + str(uuid.uuid4())",
		"now":     "return str(round(time.time() / 86400))",
	},
}

// TestBodies: hundreds of calls of an image, in any order and several at once, come to
// what new instances come to.
func TestBodies(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		p := l.with(t, bodies[l.name])
		p.Manifest.Limits.Timeout = 20 * time.Second
		left, anew := load(t, engine(t, runtime.StrategyImage), p), load(t, engine(t, runtime.StrategyNew), p)
		want := map[string]string{}
		for name := range bodies[l.name] {
			if name != "spins" && name != "chance" {
				want[name] = told(t, anew, name, "{}")
			}
		}
		if want["sum"] == "" || strings.Count(fmt.Sprint(want), "ok:") < 5 {
			t.Fatalf("new instances say %v", want)
		}
		names := slices.Sorted(maps.Keys(want))
		var done sync.WaitGroup
		for w := range 2 {
			done.Go(func() {
				for i := range *calls {
					name := names[(i*7+w)%len(names)]
					if got := told(t, left, name, "{}"); got != want[name] {
						t.Errorf("%s: %s, a new instance says %s", name, got, want[name])
					}
				}
			})
		}
		done.Wait()
		numbers := map[string]bool{}
		for range 60 {
			got := told(t, left, "chance", "{}")
			if !strings.HasPrefix(got, "ok:") {
				t.Fatal(got)
			}
			numbers[got] = true
		}
		if len(numbers) != 60 {
			t.Errorf("%d different numbers of 60", len(numbers))
		}
	})
}

// TestTimeout: a loop is stopped, and the instance serves on.
func TestTimeout(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		p := l.with(t, bodies[l.name])
		p.Manifest.Limits.Timeout = 5 * time.Second
		left := load(t, engine(t, runtime.StrategyImage), p)
		r := left.Call(t.Context(), runtime.Request{Tool: "spins"})
		if _, ok := errors.AsType[*runtime.TimeoutError](r.Err); r.Outcome != runtime.Timeout || !ok {
			t.Errorf("%s, %v", r.Outcome, r.Err)
		}
		if got := told(t, left, "deep", "{}"); !strings.HasPrefix(got, "ok:") {
			t.Error(got)
		}
	})
}

// BenchmarkCall is one call: of an image, or on a new instance.
func BenchmarkCall(b *testing.B) {
	for _, l := range languages {
		for _, s := range []runtime.Strategy{runtime.StrategyImage, runtime.StrategyNew} {
			b.Run(l.name+"/"+string(s), func(b *testing.B) {
				p := load(b, engine(b, s), l.source(b))
				told(b, p, "count_words", `{"text":"to be"}`)
				for b.Loop() {
					if got := told(b, p, "count_words", `{"text":"To be or not to be"}`); !strings.HasPrefix(got, "ok:") {
						b.Fatal(got)
					}
				}
			})
		}
	}
}
