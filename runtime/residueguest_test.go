package runtime

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime/image"
	"github.com/sandboxd/sandboxd/tool"
)

var (
	wasmOpt      = flag.String("wasmopt", "", "a wasm-opt, or auto for the one on PATH: what programs leave is tried from their first read on, too")
	interpreters = flag.String("interpreters", "", "the folder that guests/interpreters.sh filled: what scripts leave is tried, too")
)

// residueGuest is a guest that leaves secrets and looks for them: it has the tools
// trade and keep, with the arguments of testdata/residue.
type residueGuest struct {
	name   string
	share  int // of the number of calls it is called one in so many times
	kind   Kind
	build  func() ([]byte, error)
	abi    tool.ABI
	most   int64  // bytes of memory
	script string // in testdata/scripts; empty: it is no interpreter
	module string // in -interpreters; empty: it is no interpreter
	as     string // what the script is called
	slow   bool   // to be built or compiled
	stdin  bool   // it begins at its first read of standard input, given a wasm-opt
	// sees are places where it finds what it leaves itself.
	sees []string
}

var (
	seesMemory  = []string{"memory ", "descriptor 0\n", "descriptor 2\n", "descriptor 5\n", "scratch "}
	seesGlobals = append([]string{"global 0\n", "global 1\n", "global 2\n", "global 3\n"}, seesMemory...)
)

// residueGuests are the guests of all kinds. Where time is short the last one has what
// the others leave of it.
var residueGuests = []residueGuest{
	{
		name: "c-reactor", share: 1, kind: KindInitialized, abi: tool.Reactor, most: 1 << 20, sees: seesGlobals,
		build: func() ([]byte, error) { return os.ReadFile(filepath.FromSlash("../guests/c/residue/residue.wasm")) },
	},
	{
		name: "go-command", share: 10, kind: KindInstantiated, abi: tool.Command, most: 16 << 20, sees: seesMemory, slow: true,
		build: sync.OnceValues(func() ([]byte, error) { return buildResidue("-buildmode=exe") }),
	},
	{
		name: "c-command", share: 10, kind: KindInstantiated, abi: tool.Command, most: 1 << 20, sees: seesGlobals, stdin: true,
		build: func() ([]byte, error) {
			return os.ReadFile(filepath.FromSlash("../guests/c/residue/residue-command.wasm"))
		},
	},
	{
		name: "javascript", share: 100, kind: KindInstantiated, abi: tool.Command, most: 64 << 20, slow: true, stdin: true,
		module: "qjs.wasm", script: "residue.js", as: "main.js", sees: []string{"global ", "scratch "},
	},
	{
		name: "python", share: 100, kind: KindInstantiated, abi: tool.Command, most: 256 << 20, slow: true, stdin: true,
		module: "python.wasm", script: "residue.py", as: "main.py", sees: []string{"global ", "environment ", "descriptor ", "scratch "},
	},
	{
		name: "go-reactor", share: 1, kind: KindInitialized, abi: tool.Reactor, most: 16 << 20, sees: seesMemory, slow: true,
		build: sync.OnceValues(func() ([]byte, error) { return buildResidue("-buildmode=c-shared") }),
	},
}

// residueGuestsHere are those that can be tried.
func residueGuestsHere() []residueGuest {
	var list []residueGuest
	for _, g := range residueGuests {
		if g.slow && testing.Short() || g.module != "" && *interpreters == "" {
			continue
		}
		if g.stdin && *wasmOpt != "" {
			g.kind = KindStdin
		}
		list = append(list, g)
	}
	return list
}

// buildResidue builds the guest in Go.
func buildResidue(mode string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "residue")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sources, err := filepath.Glob("testdata/residue/*")
	if err != nil {
		return nil, err
	}
	for _, name := range sources { // so that the result of a test is not kept where they changed
		if _, err := os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	out := filepath.Join(dir, "residue.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", mode, "-o", out, "./testdata/residue")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return os.ReadFile(out)
}

// source returns the package of the guest.
func (g *residueGuest) source() (*tool.Package, error) {
	define := func(name string, claim capabilities.Claim) tool.Definition {
		return tool.Definition{Name: name, InputSchema: []byte(`{"type":"object"}`), Claim: claim}
	}
	p := &tool.Package{Manifest: tool.Manifest{
		Name: "residue", ABI: g.abi,
		Tools:    []tool.Definition{define("trade", readOnly), define("keep", writer)},
		Requests: tool.Requests{KV: true, Volumes: []tool.VolumeRequest{{Name: "data", Path: "/data"}}},
		Limits:   tool.Limits{Memory: g.most, Timeout: 2 * time.Minute, Output: 1 << 20, Writes: 1 << 20, Files: 100},
		Reseeds:  g.stdin,
	}}
	var err error
	if g.module == "" {
		p.Module, err = g.build()
		return p, err
	}
	if p.Module, err = os.ReadFile(filepath.Join(*interpreters, g.module)); err != nil {
		return nil, err
	}
	p.Manifest.Files, p.Manifest.Args, p.Files = "script", []string{"/package/" + g.as}, map[string][]byte{}
	for as, name := range map[string]string{g.as: "testdata/scripts/" + g.script, "sandboxd.py": "../guests/python/script/sandboxd.py"} {
		if p.Files[as], err = os.ReadFile(filepath.FromSlash(name)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// load loads the guest into an engine of its own.
func (g *residueGuest) load(t *testing.T, s Strategy, m image.Method) *Package {
	t.Helper()
	src, err := g.source()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: memstore.New(), Strategy: s, Cache: compiled()}
	if g.kind == KindStdin {
		opt, err := asyncify.New(asyncify.Options{
			Program: *wasmOpt, Cache: filepath.Join(cmp.Or(*interpreters, compiled()), "cache", "asyncify"),
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Rewrite = opt.Rewrite
	}
	e, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	e.method = m
	return mustLoad(t, e, src, Binding{Limits: CallLimits{Memory: residueCallers * (g.most + 16<<20), Wait: 5 * time.Minute}})
}
