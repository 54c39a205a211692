package hostmcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// guest is an instance that forwards both functions.
type guest struct {
	api.Module
	t       testing.TB
	process *wasi.Process
	notes   *Notes
	got     []string
}

func forwarder(noMemory bool) []byte {
	m := wasmtest.Module{Memory: [2]uint32{1, 1}, NoMemory: noMemory}
	for _, forward := range []bool{false, true} {
		for i, f := range functions() {
			g := wasmtest.Func{Import: ModuleName, Name: f.name, Params: f.params, Results: []byte{wasmtest.I32}}
			if forward {
				g.Import = ""
				for p := range f.params {
					g.Body = append(g.Body, wasmtest.LocalGet(p)...)
				}
				g.Body = append(g.Body, wasmtest.Call(i)...)
			}
			m.Funcs = append(m.Funcs, g)
		}
	}
	return m.Encode()
}

func newGuest(t testing.TB, module []byte) *guest {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &guest{t: t, process: wasi.NewProcess(wasi.Options{})}
	g.notes = NewNotes(Receiver{
		Progress: func(p, total float64, m string) { g.got = append(g.got, fmt.Sprintf("%v/%v %s", p, total, m)) },
		Log:      func(level, text string) { g.got = append(g.got, level+": "+text) },
	})
	if _, err := Instantiate(t.Context(), r, func(api.Module) (*wasi.Process, *Notes) { return g.process, g.notes }); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	g.Module = m
	return g
}

func (g *guest) put(at uint32, s string) (ptr, n uint64) {
	g.t.Helper()
	if !g.Memory().WriteString(at, s) {
		g.t.Fatal("out of memory")
	}
	return uint64(at), uint64(len(s))
}

func (g *guest) call(ctx context.Context, name string, args ...uint64) (errno, error) {
	r, err := g.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return 0, err
	}
	return errno(r[0]), nil
}

func (g *guest) progress(p, total float64, message string) errno {
	g.t.Helper()
	ptr, n := g.put(64, message)
	e, err := g.call(g.t.Context(), "progress", api.EncodeF64(p), api.EncodeF64(total), ptr, n)
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func (g *guest) log(level, text string) errno {
	g.t.Helper()
	lp, ln := g.put(0, level)
	tp, tn := g.put(8192, text)
	e, err := g.call(g.t.Context(), "log", lp, ln, tp, tn)
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func TestProgress(t *testing.T) {
	g := newGuest(t, forwarder(false))
	for _, c := range []struct {
		progress, total float64
		message         string
		want            errno
	}{
		{-1, 0, "", success},
		{-1, 0, "again", eINVAL},
		{0.5, 2, "half ✓", success},
		{0.25, 2, "back", eINVAL},
		{math.NaN(), 2, "", eINVAL},
		{1, math.NaN(), "", eINVAL},
		{math.Inf(1), 2, "", eINVAL},
		{1, math.Inf(1), "", eINVAL},
		{1, -1, "", eINVAL},
		{1, 2, "\xff", eILSEQ},
		{1, 2, strings.Repeat("x", MaxBytes+1), eMSGSIZE},
		{1, 2, "", success},
	} {
		if got := g.progress(c.progress, c.total, c.message); got != c.want {
			t.Errorf("%v/%v %.20q = %d, want %d", c.progress, c.total, c.message, got, c.want)
		}
	}
	want := []string{"-1/0 ", "0.5/2 half ✓", "1/2 "}
	if !slices.Equal(g.got, want) || g.notes.Dropped() != 9 {
		t.Errorf("got %q, %d dropped", g.got, g.notes.Dropped())
	}
}

func TestLog(t *testing.T) {
	g := newGuest(t, forwarder(false))
	for _, level := range levels {
		if e := g.log(level, "x"); e != success {
			t.Errorf("%s = %d", level, e)
		}
	}
	for _, level := range []string{"", "Info", "trace", strings.Repeat("x", MaxBytes+1)} {
		if e := g.log(level, "x"); e != eINVAL {
			t.Errorf("%.10q = %d, want %d", level, e, eINVAL)
		}
	}
	if e := g.log("info", strings.Repeat("x", MaxBytes)); e != success {
		t.Errorf("longest = %d", e)
	}
	if len(g.got) != len(levels)+1 || g.notes.Dropped() != 4 {
		t.Errorf("%d delivered, %d dropped", len(g.got), g.notes.Dropped())
	}
}

func TestNotesAreCounted(t *testing.T) {
	g := newGuest(t, forwarder(false))
	for i := range MaxNotes/2 + 5 {
		g.progress(float64(i), 0, "")
		g.log("debug", "x")
	}
	if len(g.got) != MaxNotes || g.notes.Dropped() != 10 {
		t.Errorf("%d delivered, %d dropped", len(g.got), g.notes.Dropped())
	}
	if e := g.log("debug", "x"); e != eNOBUFS {
		t.Errorf("one more = %d, want %d", e, eNOBUFS)
	}
}

// Whether anybody listens makes no difference to the guest.
func TestNobodyListens(t *testing.T) {
	g := newGuest(t, forwarder(false))
	g.notes = NewNotes(Receiver{})
	if a, b := g.progress(1, 0, ""), g.log("info", "x"); a != success || b != success || g.notes.Dropped() != 0 {
		t.Errorf("got %d, %d, %d dropped", a, b, g.notes.Dropped())
	}
}

func TestOutsideOfCall(t *testing.T) {
	g := newGuest(t, forwarder(false))
	g.notes = nil
	if a, b := g.progress(1, 0, ""), g.log("info", "x"); a != eNOTSUP || b != eNOTSUP {
		t.Errorf("got %d, %d", a, b)
	}
	g.process = nil
	if _, err := g.call(t.Context(), "log", 0, 0, 0, 0); !errors.Is(err, wasi.ErrNoProcess) {
		t.Errorf("got %v, want %v", err, wasi.ErrNoProcess)
	}
}

func TestWithoutMemory(t *testing.T) {
	g := newGuest(t, forwarder(true))
	if e, err := g.call(t.Context(), "log", 0, 0, 0, 0); e != eFAULT || err != nil {
		t.Errorf("got %d, %v", e, err)
	}
}

// A guest that only sends stops when its context ends, and stays stopped.
func TestEndedContextStops(t *testing.T) {
	g := newGuest(t, forwarder(false))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("over")
	cancel(cause)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if _, err := g.call(ctx, "log", 0, 0, 0, 0); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
	}
	if len(g.got)+g.notes.Dropped() != 0 {
		t.Error("a stopped guest was heard")
	}
}

// Whatever numbers a guest passes, it gets an answer, what is delivered is
// valid, and every message is either delivered or counted.
func TestAnyArguments(t *testing.T) {
	g := newGuest(t, forwarder(false))
	g.put(0, "infoXdebug\xff\xc3")
	word := rapid.OneOf(rapid.Uint64Range(0, 16), rapid.Uint64Range(65530, 65540), rapid.Uint64())
	rapid.Check(t, func(t *rapid.T) {
		g.got, g.notes = nil, NewNotes(g.notes.to)
		calls := rapid.IntRange(1, 4).Draw(t, "calls")
		for range calls {
			name := rapid.SampledFrom([]string{"progress", "log"}).Draw(t, "name")
			args := rapid.SliceOfN(word, 4, 4).Draw(t, "args")
			if _, err := g.call(g.t.Context(), name, args...); err != nil {
				t.Fatalf("%s%v: %v", name, args, err)
			}
		}
		if len(g.got)+g.notes.Dropped() != calls {
			t.Fatalf("%d calls, %d delivered, %d dropped", calls, len(g.got), g.notes.Dropped())
		}
	})
}

// TestRunsAreAnsweredAlike: a guest that is run again cannot tell, and the client is
// told once of how far the call is, and no more than of one run.
func TestRunsAreAnsweredAlike(t *testing.T) {
	g := newGuest(t, forwarder(false))
	run := func() (answers []errno) {
		for i := range MaxNotes + 2 {
			switch i {
			case 0, 1:
				answers = append(answers, g.progress(1, 2, "half"))
			case 2:
				answers = append(answers, g.progress(2, 2, "done"))
			default:
				answers = append(answers, g.log("info", "x"))
			}
		}
		return answers
	}
	first := run()
	g.notes.Again()
	if again := run(); !slices.Equal(first, again) {
		t.Error("a second run is answered otherwise")
	}
	progress := slices.DeleteFunc(slices.Clone(g.got), func(s string) bool { return strings.Contains(s, "x") })
	if len(g.got) != MaxNotes || len(progress) != 2 {
		t.Errorf("%d delivered, of them progress %q", len(g.got), progress)
	}
}
