package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// reactor assembles a reactor whose _initialize has the given body.
func reactor(init []byte, start bool) []byte {
	return reactorThat(init, w.I64Const(int64(atText)<<32|int64(len(cheerful))), start)
}

// reactorThat assembles a reactor with the given _initialize and sandboxd_call.
func reactorThat(init, call []byte, start bool) []byte {
	m := w.Module{
		Funcs: append(append([]w.Func{}, wasiImports...),
			w.Func{Name: "_initialize", Body: init},
			w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(4096)},
			w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: call},
		),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte("new"), atText: []byte(cheerful)},
	}
	if start {
		m.Start = imports + 1
	}
	return m.Encode()
}

func tryLoad(t *testing.T, p *tool.Package) error {
	t.Helper()
	_, err := newEngine(t, Observer{}).Load(context.Background(), p, Binding{})
	return err
}

// TestStartUpCodeTouchesNothing: before a request is delivered a volume can be
// enumerated and nothing else, in _initialize and in the start function alike.
func TestStartUpCodeTouchesNothing(t *testing.T) {
	for _, start := range []bool{false, true} {
		for name, body := range map[string][]byte{
			"create": open("new", oflagCreate, rightWrite),
			"read":   open("old", 0, rightRead),
			"mkdir":  mkdir("new"),
		} {
			err := tryLoad(t, pack(reactor(body, start), tool.Reactor, writer))
			var load *LoadError
			var sealed *files.SealedError
			if !errors.As(err, &load) || !errors.As(err, &sealed) {
				t.Errorf("start %v, %s: %v", start, name, err)
				continue
			}
			if sealed.Path != "/data/new" || sealed.Operation == "" {
				t.Errorf("start %v, %s: names %q of %q", start, name, sealed.Operation, sealed.Path)
			}
		}
	}
	socket := w.Seq(w.I32Const(99), w.I32Const(0), w.Call(sockShutdown), w.Drop)
	if err := tryLoad(t, pack(reactor(socket, false), tool.Reactor, capabilities.Claim{})); !errors.Is(err, capabilities.ErrViolation) {
		t.Errorf("socket: %v", err)
	}
}

func TestReactorAnswers(t *testing.T) {
	loaded, _ := load(t, newEngine(t, Observer{}), pack(reactor(nil, false), tool.Reactor, readOnly))
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != OK || len(r.Output.Content) != 1 {
		t.Fatalf("outcome %s (%v), output %s", r.Outcome, r.Err, r.Output.Content)
	}
}

// TestReactorFaults: a reactor has no exit status, and its answer must lie
// within its memory and its limit.
func TestReactorFaults(t *testing.T) {
	for name, c := range map[string]struct {
		call    []byte
		outcome Outcome
	}{
		"proc_exit(0)":   {w.Seq(exit(0), w.I64Const(0)), ToolError},
		"proc_exit(1)":   {w.Seq(exit(1), w.I64Const(0)), ToolError},
		"outside memory": {w.I64Const(0xfff0<<32 | 0x100), ToolError},
		"too long":       {w.I64Const(1<<17 | 0<<32), Limit},
		"trap":           {w.Seq(w.Unreachable), ToolError},
		"no answer":      {w.I64Const(0), OK},
	} {
		loaded, _ := load(t, newEngine(t, Observer{}), pack(reactorThat(nil, c.call, false), tool.Reactor, readOnly))
		r := loaded.Call(context.Background(), Request{Tool: "t"})
		if r.Outcome != c.outcome {
			t.Errorf("%s: %s (%v), want %s", name, r.Outcome, r.Err, c.outcome)
		}
	}
}

func TestModulesThatDoNotLink(t *testing.T) {
	for name, m := range map[string]w.Module{
		"unknown module":        {Funcs: []w.Func{{Import: "env", Name: "f"}, {Name: "_start"}}},
		"a WASI name elsewhere": {Funcs: []w.Func{{Import: "env", Name: "sched_yield", Results: []byte{w.I32}}, {Name: "_start"}}},
		"unknown function":      {Funcs: []w.Func{{Import: "wasi_snapshot_preview1", Name: "fd_teleport"}, {Name: "_start"}}},
		"wrong signature":       {Funcs: []w.Func{{Import: "wasi_snapshot_preview1", Name: "fd_close"}, {Name: "_start"}}},
		"not built yet":         {Funcs: []w.Func{{Import: "sandboxd_http", Name: "send"}, {Name: "_start"}}},
		"no start":              {Funcs: []w.Func{{Name: "main"}}},
		"wrong start":           {Funcs: []w.Func{{Name: "_start", Params: []byte{w.I32}}}},
		"no memory":             {Funcs: []w.Func{{Name: "_start"}}, NoMemory: true},
	} {
		if err := tryLoad(t, pack(m.Encode(), tool.Command, readOnly)); !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestModulesThatAreRefused: a hostile module is an error, never a panic.
func TestModulesThatAreRefused(t *testing.T) {
	huge := w.Module{Funcs: []w.Func{{Name: "_start"}}, Memory: [2]uint32{60000, 0}}
	table := w.Module{Funcs: []w.Func{{Name: "_start"}}, Table: [2]uint32{1 << 30, 0}}
	for name, b := range map[string][]byte{
		"empty":            {},
		"component":        {0, 'a', 's', 'm', 0x0d, 0, 1, 0},
		"garbage":          append(w.Module{}.Encode(), 1, 2, 3, 4, 5),
		"memory too large": huge.Encode(),
		"table too large":  table.Encode(),
	} {
		var load *LoadError
		if err := tryLoad(t, pack(b, tool.Command, readOnly)); !errors.As(err, &load) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPackageNamesNameFolders: a name becomes a folder below the state.
func TestPackageNamesNameFolders(t *testing.T) {
	for _, name := range []string{"..", "a/b", "A", "a b", "a\x00"} {
		var load *LoadError
		_, err := newEngine(t, Observer{}).Load(context.Background(), pack(command("", "", nil), tool.Command, writer), Binding{As: name})
		if !errors.As(err, &load) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestUnsupportedIsSaid(t *testing.T) {
	p := pack(command("", "", nil), tool.MCP, readOnly)
	if err := tryLoad(t, p); !errors.Is(err, ErrNotSupported) {
		t.Errorf("abi mcp: %v", err)
	}
	p = pack(command("", "", nil), tool.Command, readOnly)
	p.Manifest.Requests.Session = true
	if err := tryLoad(t, p); !errors.Is(err, ErrNotSupported) {
		t.Errorf("session: %v", err)
	}
}

// TestListedIsNeverSaferThanEnforced: what is not held against every call is
// listed with its pessimistic value.
func TestListedIsNeverSaferThanEnforced(t *testing.T) {
	additive := capabilities.Claim{ReadOnly: capabilities.False, Destructive: capabilities.False, Idempotent: capabilities.True}
	for name, c := range map[string]struct {
		binding Binding
		want    capabilities.Effective
	}{
		"always": {Binding{}, capabilities.Effective{Idempotent: true, OpenWorld: true}},
		"sample": {Binding{Replay: map[string]ReplayPolicy{"t": ReplaySample}}, capabilities.Effective{OpenWorld: true}},
		"off":    {Binding{Replay: map[string]ReplayPolicy{DefaultReplay: ReplayOff}}, capabilities.Effective{OpenWorld: true}},
		"report": {Binding{Mode: capabilities.Report}, capabilities.Effective{Destructive: true, OpenWorld: true}},
	} {
		loaded := mustLoad(t, newEngine(t, Observer{}), pack(command("", "", nil), tool.Command, additive), c.binding)
		if got := loaded.Tools()[0].Listed; got != c.want {
			t.Errorf("%s: listed %+v, want %+v", name, got, c.want)
		}
	}
}

// TestFoldersOfTheHostAreNotGiven: a tool that could write compiled code, or
// the volumes of other packages, would be outside of its sandbox.
func TestFoldersOfTheHostAreNotGiven(t *testing.T) {
	base := t.TempDir()
	state, cache := filepath.Join(base, "state"), filepath.Join(base, "cache")
	e, err := New(context.Background(), Options{Store: memstore.New(), State: state, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	inside := filepath.Join(cache, "x")
	link := filepath.Join(base, "link")
	if err := errors.Join(os.MkdirAll(state, 0o700), os.MkdirAll(inside, 0o700), os.Symlink(cache, link)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{base, state, cache, inside, link, filepath.Join(base, "missing")} {
		b := Binding{Folders: map[string]string{"data": dir}}
		if _, err := e.Load(context.Background(), pack(command("", "", nil), tool.Command, writer), b); !errors.Is(err, ErrVolume) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
