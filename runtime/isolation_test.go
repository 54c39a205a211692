package runtime

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// importing assembles a command that imports one thing of a kind other than a
// function: 1 a table, 2 a memory, 3 a global.
func importing(module, name string, kind byte) []byte {
	section := func(id byte, b ...byte) []byte { return append([]byte{id, byte(len(b))}, b...) }
	text := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	what := map[byte][]byte{1: {1, 0x70, 0, 1}, 2: {2, 0, 1}, 3: {3, 0x7f, 1}}[kind]
	return w.Seq(
		[]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 1, 0x60, 0, 0),
		section(2, w.Seq([]byte{1}, text(module), text(name), what)...),
		section(3, 1, 0),
		section(7, w.Seq([]byte{1}, text("_start"), []byte{0, 0})...),
		section(10, 1, 2, 0, 0x0b),
	)
}

// TestNothingIsImportedFromOtherModules: a module that could link against a
// running instance would act with the authority of its call.
func TestNothingIsImportedFromOtherModules(t *testing.T) {
	e := newEngine(t, Observer{})
	victim := pack(command("", "", w.Forever), tool.Command, writer)
	victim.Manifest.Limits.Timeout = time.Minute
	loaded, _ := load(t, e, victim)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan *Result)
	go func() { done <- loaded.Call(ctx, Request{Tool: "t"}) }()
	var running string
	for running == "" {
		e.slots.Range(func(name, _ any) bool { running = name.(string); return true })
	}
	for _, module := range []string{running, "env", wasiModule} {
		for kind, name := range map[byte]string{1: "t", 2: "memory", 3: "g"} {
			_, err := e.Load(context.Background(), pack(importing(module, name, kind), tool.Command, readOnly), Binding{})
			if !errors.Is(err, ErrLink) {
				t.Errorf("import of kind %d from %q: %v", kind, module, err)
			}
		}
	}
	cancel()
	<-done
}

const wasiModule = "wasi_snapshot_preview1"

// TestStartUpIsInTheCallsRecord: start-up code that behaves at load and not
// later is held to the claim of the call that it starts for.
func TestStartUpIsInTheCallsRecord(t *testing.T) {
	// The start function calls a socket function when a random byte is odd.
	m := w.Module{
		Funcs: []w.Func{
			{Import: wasiModule, Name: "random_get", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
			{Import: wasiModule, Name: "sock_shutdown", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
			{Name: "_start"},
			{Body: w.Seq(
				w.I32Const(8), w.I32Const(1), w.Call(0), w.Drop,
				w.I32Const(8), []byte{0x2d, 0, 0}, w.I32Const(1), []byte{0x71, 0x04, 0x40}, // i32.load8_u; and 1; if
				w.I32Const(0), w.I32Const(0), w.Call(1), w.Drop, []byte{0x0b})},
		},
		Memory: [2]uint32{1, 0}, Start: 4,
	}
	for name, c := range map[string]struct {
		claim   capabilities.Claim
		outcome Outcome
	}{"closed": {readOnly, Violation}, "open": {capabilities.Claim{}, OK}} {
		var seen int
		e := newEngine(t, Observer{Violation: func(CallInfo, capabilities.Violation) { seen++ }})
		var loaded *Package
		var err error
		for loaded == nil {
			loaded, err = e.Load(context.Background(), pack(m.Encode(), tool.Command, c.claim), Binding{})
			if err != nil && !errors.Is(err, capabilities.ErrViolation) {
				t.Fatal(err)
			}
		}
		caught := false
		for range 100 {
			r := loaded.Call(context.Background(), Request{Tool: "t"})
			if r.Outcome == OK && len(r.Denials) == 0 {
				continue
			}
			caught = true
			if r.Outcome != c.outcome || c.outcome == Violation && (r.Violation == nil || seen == 0) {
				t.Errorf("%s: outcome %s, violation %v, observed %d, denials %v", name, r.Outcome, r.Violation, seen, r.Denials)
			}
			break
		}
		if !caught {
			t.Errorf("%s: never caught in 100 calls", name)
		}
	}
}

// TestRunGivesNoFolderOfTheHost: what holds for packages holds for run.
func TestRunGivesNoFolderOfTheHost(t *testing.T) {
	home := t.TempDir()
	cache := filepath.Join(home, "cache")
	e, err := New(context.Background(), Options{Cache: cache, Store: memstore.New(), State: filepath.Join(home, "state")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	s, dir, _ := runSpec(t, command("", "", nil), false)
	for _, dirs := range [][]RunDir{
		{{Host: home, Guest: "/home"}},
		{{Host: cache, Guest: "/cache"}},
		{{Host: dir, Guest: "/a"}, {Host: dir, Guest: "/b"}},
	} {
		s.Dirs = dirs
		if _, err := e.Run(context.Background(), s); !errors.Is(err, ErrVolume) {
			t.Errorf("%v: %v", dirs, err)
		}
	}
}

// TestFoldersDoNotOverlap: neither the host's own, also where they are not made
// yet and lie behind a link, nor two volumes of one package.
func TestFoldersDoNotOverlap(t *testing.T) {
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	e, err := New(context.Background(), Options{Store: memstore.New(), State: filepath.Join(link, "not", "made")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	p := pack(command("", "", nil), tool.Command, writer)
	if _, err := e.Load(context.Background(), p, Binding{Folders: map[string]string{"data": real}}); !errors.Is(err, ErrVolume) {
		t.Errorf("a folder that holds the state folder: %v", err)
	}
	p.Manifest.Requests.Volumes = append(p.Manifest.Requests.Volumes, tool.VolumeRequest{Name: "more", Path: "/more"})
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{outer, outer}, {outer, inner}, {inner, outer}} {
		b := Binding{Folders: map[string]string{"data": pair[0], "more": pair[1]}}
		if _, err := e.Load(context.Background(), p, b); !errors.Is(err, ErrVolume) {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

// TestRunStopsWhileItReads: a program that waits for input ends at its
// deadline.
func TestRunStopsWhileItReads(t *testing.T) {
	m := w.Module{
		Funcs: []w.Func{
			{Import: wasiModule, Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
			{Name: "_start", Body: w.Seq(storeI32(atIovec, atText), storeI32(atIovec+4, 10), w.I32Const(0), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(0), w.Drop)},
		},
		Memory: [2]uint32{1, 0},
	}
	s, _, _ := runSpec(t, m.Encode(), false)
	s.Limits.Timeout = 200 * time.Millisecond
	in, end := io.Pipe()
	defer end.Close()
	s.Stdin = in
	if _, err := newEngine(t, Observer{}).Run(context.Background(), s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
