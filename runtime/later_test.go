package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// recorded returns a package whose tools are on record, and how its load ended.
func recorded(t *testing.T, e *Engine, p *tool.Package, b Binding, check func([]tool.Definition) error) (*Package, <-chan error) {
	t.Helper()
	done := make(chan error, 2)
	loaded, err := e.LoadLater(t.Context(), p, b, Recorded{
		Tools: []tool.Definition{p.Manifest.Tools[0]}, Check: check, Done: func(err error) { done <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded, done
}

func asRecorded([]tool.Definition) error { return nil }

func compiles(n *atomic.Int32) Observer {
	return Observer{Compile: func(string, int) func() { n.Add(1); return nil }}
}

// A package whose tools are on record is not compiled before somebody asks, and
// once however many do.
func TestLoadLater(t *testing.T) {
	for name, ask := range map[string]func(p *Package) []<-chan *Result{
		"in the background": func(p *Package) []<-chan *Result { p.Warm(); p.Warm(); return nil },
		"by calls": func(p *Package) (ended []<-chan *Result) {
			for range 8 {
				ended = append(ended, calls(t.Context(), p))
			}
			return ended
		},
		"by both": func(p *Package) []<-chan *Result { p.Warm(); return []<-chan *Result{calls(t.Context(), p)} },
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			kinds := make(chan Kind, 4)
			e := newEngine(t, Tee(compiles(&n), Observer{Kind: func(_ string, k Kind, _ Reason) { kinds <- k }}))
			var checked []tool.Definition
			p, done := recorded(t, e, pack(reactor(nil, false), tool.Reactor, readOnly), Binding{}, func(now []tool.Definition) error {
				checked = now
				return nil
			})
			if k, why := p.Kind(); k != "" || why != "" || len(kinds) != 0 || p.Because() != nil {
				t.Errorf("its kind is known before it is loaded: %s, %s", k, why)
			}
			if len(p.Tools()) != 1 || n.Load() != 0 {
				t.Fatalf("%d tools, %d compilations", len(p.Tools()), n.Load())
			}
			for _, ended := range ask(p) {
				if r := <-ended; r.Outcome != OK {
					t.Errorf("%s, %v", r.Outcome, r.Err)
				}
			}
			if err := <-done; err != nil || n.Load() != 1 || len(checked) != 1 || checked[0].Name != "t" {
				t.Errorf("%v, %d compilations, tools %v", err, n.Load(), checked)
			}
			if k, _ := p.Kind(); k == "" || len(kinds) != 1 || k != <-kinds {
				t.Errorf("kind %s, told %d times", k, len(kinds))
			}
			p.Warm()
			if r := <-calls(t.Context(), p); r.Outcome != OK || n.Load() != 1 {
				t.Errorf("once more: %s, %d compilations", r.Outcome, n.Load())
			}
			if len(done) != 0 {
				t.Error("the end is told twice")
			}
		})
	}
}

// What goes wrong later is told once and refuses every call; no guest is called,
// and the client reads no more than that.
func TestLoadLaterFails(t *testing.T) {
	lie := errors.New("not what is recorded, says /secret/path")
	for name, c := range map[string]struct {
		init  []byte
		check func([]tool.Definition) error
		phase string
		is    func(error) bool
	}{
		"it touches a volume": {open("old", 0, rightRead), asRecorded, "_initialize", func(err error) bool {
			_, ok := errors.AsType[*files.SealedError](err)
			return ok
		}},
		"it traps": {w.Unreachable, asRecorded, "_initialize", func(err error) bool {
			_, ok := errors.AsType[*TrapError](err)
			return ok
		}},
		"it has other tools": {nil, func([]tool.Definition) error { return lie }, "describe", func(err error) bool { return errors.Is(err, lie) }},
		"the host panics":    {nil, func([]tool.Definition) error { panic("out of order") }, "describe", func(err error) bool { return errors.Is(err, errPanic) }},
		"nobody checks":      {nil, nil, "describe", func(err error) bool { return errors.Is(err, errNoCheck) }},
	} {
		t.Run(name, func(t *testing.T) {
			var seen ends
			p, done := recorded(t, newEngine(t, seen.observer()), pack(reactor(c.init, false), tool.Reactor, writer), Binding{}, c.check)
			first, second := calls(t.Context(), p), calls(t.Context(), p)
			for _, ended := range []<-chan *Result{first, second, calls(t.Context(), p)} {
				r := <-ended
				l, ok := errors.AsType[*LoadError](r.Err)
				if r.Outcome != Refused || !ok || l.Phase != c.phase || l.Package != "p" || !c.is(r.Err) {
					t.Errorf("%s, %v", r.Outcome, r.Err)
				}
				if text := textOf(t, r); !strings.Contains(text, "does not load any more ("+c.phase+")") || strings.Contains(text, "/") {
					t.Errorf("the client reads: %s", text)
				}
			}
			if err := <-done; !isLoadError(err) || !c.is(err) {
				t.Errorf("told %v", err)
			}
			if len(done) != 0 || len(seen.all()) != 3 {
				t.Errorf("told again; %d calls on record", len(seen.all()))
			}
		})
	}
}

// What can be known without running the module is refused at once.
func TestLoadLaterAtOnce(t *testing.T) {
	e := newEngine(t, Observer{})
	good := func() *tool.Package { return pack(reactor(nil, false), tool.Reactor, writer) }
	unlinked, unnamed, broken := good(), good(), good()
	unlinked.Module = w.Module{Funcs: []w.Func{{Name: "main"}}}.Encode()
	unnamed.Manifest.Name = ""
	broken.Manifest.Tools[0].InputSchema = []byte(`{"type": 1}`)
	for name, c := range map[string]struct {
		pkg   *tool.Package
		b     Binding
		tools []tool.Definition
		phase string
	}{
		"no tools":   {good(), Binding{}, nil, "describe"},
		"no name":    {unnamed, Binding{}, good().Manifest.Tools, "manifest"},
		"no link":    {unlinked, Binding{}, good().Manifest.Tools, "link"},
		"no volume":  {good(), Binding{Folders: map[string]string{"other": t.TempDir()}}, good().Manifest.Tools, "volumes"},
		"no pattern": {good(), Binding{OptionalWrites: []string{"["}}, good().Manifest.Tools, "binding"},
		"no schema":  {broken, Binding{}, broken.Manifest.Tools, "schemas"},
	} {
		p, err := e.LoadLater(t.Context(), c.pkg, c.b, Recorded{Tools: c.tools, Check: asRecorded})
		if l, ok := errors.AsType[*LoadError](err); p != nil || !ok || l.Phase != c.phase {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.LoadLater(t.Context(), good(), Binding{}, Recorded{Tools: good().Manifest.Tools}); err != nil {
		t.Errorf("nobody told: %v", err)
	}
}

// spins is a package whose start-up code does not end by itself.
func spins() *tool.Package {
	p := pack(reactor(w.Forever, false), tool.Reactor, writer)
	p.Manifest.Limits.Timeout = time.Hour
	return p
}

// started returns a channel that is closed when the first load has begun.
func started() (Observer, <-chan struct{}) {
	began := make(chan struct{})
	return Observer{Compile: func(string, int) func() { close(began); return nil }}, began
}

// Who closes a package, or the engine, does not wait for its load, nor do calls:
// they are refused as those that come too late. Nobody is told how the load ended.
func TestCloseWhileItLoads(t *testing.T) {
	for name, end := range map[string]func(e *Engine, p *Package) error{
		"package": func(_ *Engine, p *Package) error { return p.Close(context.Background()) },
		"drain":   func(e *Engine, _ *Package) error { return e.Drain(context.Background()) },
		"engine":  func(e *Engine, _ *Package) error { return e.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			o, began := started()
			e := newEngine(t, o)
			p, done := recorded(t, e, spins(), Binding{}, asRecorded)
			behind, behindDone := recorded(t, e, spins(), Binding{}, asRecorded)
			ended := calls(context.Background(), p)
			<-began
			if name != "package" {
				behind.Warm() // it may begin or not
			}
			if err := end(e, p); err != nil {
				t.Error(err)
			}
			if r := <-ended; r.Outcome != Refused || !errors.Is(r.Err, ErrClosed) {
				t.Errorf("%s, %v", r.Outcome, r.Err)
			}
			if len(done)+len(behindDone) != 0 {
				t.Error("an end is told")
			}
		})
	}
}

// A call waits for the load as long as it would for other calls, and goes when its
// caller does; the load goes on for others.
func TestCallWaitsForLoad(t *testing.T) {
	o, began := started()
	e := newEngine(t, o)
	p, done := recorded(t, e, spins(), Binding{Limits: CallLimits{Wait: time.Millisecond}}, asRecorded)
	r := <-calls(t.Context(), p)
	if b, ok := errors.AsType[*BusyError](r.Err); r.Outcome != Limit || !ok || !b.Loading || b.RetryAfter <= 0 || !errors.Is(b, ErrBusy) {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if text := textOf(t, r); !strings.Contains(text, "still being loaded; try again in 1 s") {
		t.Errorf("the client reads: %s", text)
	}
	<-began
	gone := errors.New("gone")
	if r := <-calls(over(gone), p); r.Outcome != Timeout || !errors.Is(r.Err, gone) {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if len(done) != 0 {
		t.Error("the load ended with its caller")
	}
}

// Packages that calls wait for come before the others, in the order of their first
// calls, and find a place.
func TestOrderOfLoads(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	e := newEngine(t, Observer{})
	loading, proceed := make(chan string), map[string]chan struct{}{}
	named := func(name string) *Package {
		proceed[name] = make(chan struct{})
		src := pack(reactor(nil, false), tool.Reactor, readOnly)
		src.Manifest.Name = name
		p, _ := recorded(t, e, src, Binding{}, func([]tool.Definition) error {
			loading <- name
			<-proceed[name]
			return nil
		})
		return p
	}
	var ended []<-chan *Result
	call := func(p *Package) {
		ended = append(ended, calls(context.Background(), p))
		for { // until it is in its place
			e.loads.mu.Lock()
			at := p.later.place
			e.loads.mu.Unlock()
			if at >= forCall {
				return
			}
			goruntime.Gosched()
		}
	}
	a, b, c, d, f := named("a"), named("b"), named("c"), named("d"), named("f")
	for _, p := range []*Package{a, b, c} {
		p.Warm()
	}
	order := <-loading // of the two that run at once, one in the background
	call(d)
	order += <-loading
	call(f)
	call(c)
	for _, name := range []string{"a", "d", "f"} {
		close(proceed[name])
		order += <-loading
	}
	if order != "adfcb" {
		t.Errorf("loaded in the order %s", order)
	}
	close(proceed["c"])
	close(proceed["b"])
	for _, r := range ended {
		if r := <-r; r.Outcome != OK {
			t.Errorf("%s, %v", r.Outcome, r.Err)
		}
	}
}

// Nothing runs on when the engine is closed with loads in each state.
func TestLoadsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(t.Context(), Options{Store: memstore.New()})
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			p, _ := recorded(t, e, pack(reactor(nil, false), tool.Reactor, readOnly), Binding{}, asRecorded)
			p.Warm()
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
