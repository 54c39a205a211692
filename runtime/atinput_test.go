package runtime

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

// The program of testdata/input, and what asyncify makes of it; build.sh there says how.
var (
	//go:embed testdata/input/input.wasm
	inputModule []byte
	//go:embed testdata/input/input-left.wasm
	inputLeft []byte
)

// rewriting makes of the test's program what wasm-opt made of it.
func rewriting(_ context.Context, module []byte) ([]byte, error) {
	if !bytes.Equal(module, inputModule) {
		return nil, asyncify.ErrModule
	}
	return inputLeft, nil
}

// inputWays are the ways in which an engine can run the program.
var inputWays = map[string]struct {
	options Options
	kind    Kind
}{
	"left":       {Options{Rewrite: rewriting}, KindStdin},
	"not left":   {Options{}, KindInstantiated},
	"new":        {Options{Strategy: StrategyNew, Rewrite: rewriting}, KindNew},
	"prestarted": {Options{Strategy: StrategyPrestarted}, KindNew},
}

// inputPackage is a package of the program, which does start before it reads.
func inputPackage(start string) *tool.Package {
	p := pack(inputModule, tool.Command, writer)
	p.Manifest.Reseeds, p.Manifest.Args, p.Manifest.Files = true, []string{start}, "files"
	p.Files = map[string][]byte{"table": []byte("abc")}
	p.Manifest.Tools[0].InputSchema = []byte(`{"type":"object","properties":{"do":{"type":"string"}}}`)
	p.Manifest.Limits.Memory = 8 << 20
	p.Manifest.Limits.Timeout = 20 * time.Second
	return p
}

// inputs loads the package in an engine of its own.
func inputs(t testing.TB, o Options, p *tool.Package) *Package {
	t.Helper()
	o.Store = memstore.New()
	e, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	loaded, _ := load(t, e, p)
	return loaded
}

// do has the program do something, and returns what it printed, or how it ended.
func do(t testing.TB, p *Package, what string) string {
	t.Helper()
	r := p.Call(context.Background(), Request{Tool: "t", Arguments: []byte(`{"do":"` + what + `"}`)})
	if r.Outcome != OK {
		if _, trapped := errors.AsType[*TrapError](r.Err); trapped {
			return "trap"
		}
		return fmt.Sprintf("%s: %v", r.Outcome, r.Err)
	}
	return textOf(t, r)
}

// TestInputKinds: calls come to the same on instances that were left at the first read
// and on those that start anew, again and again.
func TestInputKinds(t *testing.T) {
	for name, way := range inputWays {
		t.Run(name, func(t *testing.T) {
			p := inputs(t, way.options, inputPackage(""))
			if k, why := p.Kind(); k != way.kind || (why == "") != (k == KindStdin) || !p.atInput {
				t.Fatalf("kind %s, %s, %v", k, why, p.Because())
			}
			for round := range 3 {
				for what, want := range map[string]string{
					"sum": "199990001", "grow": "2", "deep": "1", "exit": "tool_error: exit status 7", "trap": "trap",
					"flood": "limit: output limit reached", "write": "written", "look": "1",
				} {
					if got := do(t, p, what); got != want {
						t.Errorf("round %d: %s: %q, want %q", round, what, got, want)
					}
				}
			}
		})
	}
}

// TestInputMany: hundreds of calls at once, each of which sees the state of before.
func TestInputMany(t *testing.T) {
	p := inputs(t, Options{Rewrite: rewriting}, inputPackage("package"))
	past := do(t, p, "past")
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 60 {
				if got := do(t, p, "sum"); got != "199990001" {
					t.Errorf("sum %s", got)
				}
				if got := do(t, p, "past"); got != past {
					t.Errorf("past %s, want %s", got, past)
				}
				if got := do(t, p, "grow"); got != "2" {
					t.Errorf("grow %s", got)
				}
			}
		})
	}
	calls.Wait()
}

// TestInputRandom: what is drawn after the read differs from call to call, what was
// drawn before is one for all calls of an image.
func TestInputRandom(t *testing.T) {
	for name, way := range inputWays {
		t.Run(name, func(t *testing.T) {
			p := inputs(t, way.options, inputPackage(""))
			random, past := map[string]bool{}, map[string]bool{}
			for range 60 {
				random[do(t, p, "random")] = true
				past[do(t, p, "past")] = true
			}
			if len(random) != 60 {
				t.Errorf("%d different numbers", len(random))
			}
			if (len(past) == 1) != (way.kind == KindStdin) {
				t.Errorf("%d different pasts", len(past))
			}
		})
	}
}

// TestInputTime: the clock stands before the read, and goes after it.
func TestInputTime(t *testing.T) {
	for name, way := range inputWays {
		t.Run(name, func(t *testing.T) {
			p := inputs(t, way.options, inputPackage("sleep"))
			var seconds int64
			if _, err := fmt.Sscan(do(t, p, "time"), &seconds); err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Hour {
				t.Errorf("%d, %v", seconds, err)
			}
			if born := do(t, p, "born"); born != fmt.Sprint(startUpTime.UnixMilli()) {
				t.Errorf("started at %s", born)
			}
		})
	}
}

// TestInputRefused: a program that does what an image cannot hold before it reads is
// one of whose calls each runs from its start, in every way, and ends as if it had
// promised nothing.
func TestInputRefused(t *testing.T) {
	for start, tt := range map[string]struct {
		why  Reason
		text string
		want string
	}{
		"volume":   {ReasonBeforeInput, `read of "/data/old"`, "199990001"},
		"scratch":  {ReasonBeforeInput, `write of "/tmp/new"`, "199990001"},
		"print":    {ReasonBeforeInput, "printed", "early 199990001"},
		"nonblock": {ReasonBeforeInput, "flags or rights of descriptor 0", "199990001"},
		"open":     {ReasonBeforeInput, "descriptor 6 is open", "199990001"},
		"never":    {ReasonNoInput, "ended before it read", "no request"},
		"exit":     {ReasonNoInput, "ended before it read", ""},
		"fail":     {ReasonNoInput, "ended before it read", "tool_error: exit status 3"},
		"trap":     {ReasonNoInput, "trap", "trap"},
		"close":    {ReasonNoInput, "ended before it read", "nothing to do"},
		"renumber": {ReasonNoInput, "ended before it read", ""},
	} {
		t.Run(start, func(t *testing.T) {
			for name, way := range inputWays {
				p := inputs(t, way.options, inputPackage(start))
				k, why := p.Kind()
				if way.kind == KindNew {
					why = tt.why // says that no image is made at all
				}
				no, ok := errors.AsType[*InputError](p.Because())
				if k == KindStdin || why != tt.why || !ok || no.Reason != tt.why || !strings.Contains(no.Error(), tt.text) || p.atInput {
					t.Errorf("%s: kind %s, %s: %v", name, k, why, p.Because())
				}
				for range 3 {
					if got := do(t, p, "sum"); got != tt.want {
						t.Errorf("%s: %q, want %q", name, got, tt.want)
					}
				}
			}
		})
	}
}

// TestInputSeldom: a program that does only now and then what it may not do before it
// reads is stopped in the call in which it does.
func TestInputSeldom(t *testing.T) {
	for _, name := range []string{"not left", "new", "prestarted"} {
		var p *Package
		for range 20 { // all of them are missed once in 10^18 runs
			if p = inputs(t, inputWays[name].options, inputPackage("seldom")); p.atInput {
				break
			}
		}
		stopped := 0
		for range 200 {
			r := p.Call(t.Context(), Request{Tool: "t", Arguments: []byte(`{"do":"sum"}`)})
			switch {
			case r.Outcome == ToolError && errors.Is(r.Err, errPrinted):
				stopped++
			case r.Outcome != OK || textOf(t, r) != "199990001":
				t.Fatalf("%s: %s, %v", name, r.Outcome, r.Err)
			}
		}
		if stopped == 0 {
			t.Errorf("%s: the test does not reach what it should", name)
		}
	}
}

// TestInputAllowed: what leaves no trace that an image does not hold may be done before
// the read, which may be done in pieces and from the midst of calls.
func TestInputAllowed(t *testing.T) {
	for _, start := range []string{"log", "package", "poll", "empty", "pieces", "deep"} {
		t.Run(start, func(t *testing.T) {
			for name, way := range inputWays {
				p := inputs(t, way.options, inputPackage(start))
				if k, why := p.Kind(); k != way.kind || !p.atInput {
					t.Errorf("%s: kind %s, %s: %v", name, k, why, p.Because())
				}
				for range 3 {
					if got := do(t, p, "sum"); got != "199990001" {
						t.Errorf("%s: %q", name, got)
					}
				}
			}
		})
	}
}

// TestInputDeepStack: a program that is in the midst of more calls than an image has
// room for is not left; its calls begin at the read all the same.
func TestInputDeepStack(t *testing.T) {
	p := inputs(t, Options{Rewrite: rewriting}, inputPackage("deeper"))
	k, why := p.Kind()
	if k != KindInstantiated || why != ReasonStack || !p.atInput {
		t.Errorf("kind %s, %s: %v", k, why, p.Because())
	}
	if got := do(t, p, "sum"); got != "199990001" {
		t.Error(got)
	}
}

// TestInputFuel: a limit of fuel is reached where it is without an image.
func TestInputFuel(t *testing.T) {
	got := map[string]string{}
	for name, way := range inputWays {
		m := inputPackage("")
		m.Manifest.Limits.Fuel = 10_000_000
		p := inputs(t, way.options, m)
		if k, _ := p.Kind(); k == KindStdin || !p.atInput {
			t.Errorf("%s: kind %s: %v", name, k, p.Because())
		}
		r := p.Call(t.Context(), Request{Tool: "t", Arguments: []byte(`{"do":"past"}`)})
		got[name] = fmt.Sprint(r.Outcome, r.Fuel)
	}
	for name, is := range got {
		if is != got["new"] || !strings.HasPrefix(is, string(OK)) {
			t.Errorf("%s: %s, a new instance: %s", name, is, got["new"])
		}
	}
	if p := inputs(t, Options{Rewrite: rewriting}, inputPackage("")); p.kind != KindStdin {
		t.Errorf("without a limit: %s", p.kind)
	}
}

// TestInputUnpromised: without the promise nothing changes: commands begin at _start.
func TestInputUnpromised(t *testing.T) {
	m := inputPackage("")
	m.Manifest.Reseeds = false
	p := inputs(t, Options{Rewrite: rewriting}, m)
	if k, why := p.Kind(); k != KindInstantiated || why != "" || p.Because() != nil || p.atInput {
		t.Errorf("kind %s, %s: %v", k, why, p.Because())
	}
	if got := do(t, p, "past"); got == do(t, p, "past") {
		t.Errorf("two calls drew %s", got)
	}
}

// TestInputMemory: what an image is given for the stack is not taken from the guest.
// An allocator may lose one piece to the gap that it leaves.
func TestInputMemory(t *testing.T) {
	got := map[string]int{}
	for name, way := range inputWays {
		p := inputs(t, way.options, inputPackage("malloc")) // or its heap begins after the read, with what the stack has left
		for range 2 {
			var n int
			if _, err := fmt.Sscan(do(t, p, "fill"), &n); err != nil {
				t.Fatal(err)
			}
			got[name] = n
		}
	}
	for name, n := range got {
		if n > got["new"] || n < got["new"]-1 {
			t.Errorf("%s: %d pieces of memory, a new instance has %d", name, n, got["new"])
		}
	}
}

// TestInputTimeout: a loop after the read is stopped, and the instance serves again.
func TestInputTimeout(t *testing.T) {
	for name, way := range inputWays {
		t.Run(name, func(t *testing.T) {
			m := inputPackage("")
			m.Manifest.Limits.Timeout = time.Second
			p := inputs(t, way.options, m)
			for range 2 {
				if got := do(t, p, "spin"); !strings.HasPrefix(got, "timeout: ") {
					t.Error(got)
				}
				if got := do(t, p, "sum"); got != "199990001" {
					t.Error(got)
				}
			}
		})
	}
}

// TestInputStackOverflow: recursion without end is an error, and the next call is well.
func TestInputStackOverflow(t *testing.T) {
	p := inputs(t, Options{Rewrite: rewriting}, inputPackage(""))
	for range 2 {
		if got := do(t, p, "forever"); got != "trap" && !strings.HasPrefix(got, "limit: stack") {
			t.Error(got)
		}
		if got := do(t, p, "sum"); got != "199990001" {
			t.Error(got)
		}
	}
}

// TestInputLoad: start-up code that does not end is an error of loading.
func TestInputLoad(t *testing.T) {
	for name, way := range inputWays {
		m := inputPackage("spin")
		m.Manifest.Limits.Timeout = 500 * time.Millisecond
		way.options.Store = memstore.New()
		e, err := New(t.Context(), way.options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Load(t.Context(), m, Binding{})
		if _, ok := errors.AsType[*TimeoutError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestInputSlowCompile: that a program which was not left has to be compiled anew is
// nothing that its start-up code took.
func TestInputSlowCompile(t *testing.T) {
	const limit = 2 * time.Second
	const last = 3 // after the rewriting, and what that made
	var compiled int
	o := Options{Rewrite: rewriting, Observer: Observer{Compile: func(string, int) func() {
		if compiled++; compiled == last {
			time.Sleep(limit)
		}
		return nil
	}}}
	m := inputPackage("print")
	m.Manifest.Limits.Timeout = limit
	p := inputs(t, o, m)
	if k, why := p.Kind(); k != KindInstantiated || why != ReasonBeforeInput || compiled != last {
		t.Errorf("kind %s, %s: compiled %d times", k, why, compiled)
	}
}

// TestInputRewriteFails: a rewriting that fails, or makes what cannot be used, is named
// and changes nothing else.
func TestInputRewriteFails(t *testing.T) {
	why := errors.New("why")
	for name, rewrite := range map[string]func(context.Context, []byte) ([]byte, error){
		"fails":     func(context.Context, []byte) ([]byte, error) { return nil, why },
		"no module": func(context.Context, []byte) ([]byte, error) { return []byte("no"), nil },
		"unchanged": func(_ context.Context, m []byte) ([]byte, error) { return m, nil },
		"not valid": func(context.Context, []byte) ([]byte, error) { return command("", "", []byte{0x1a}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := inputs(t, Options{Rewrite: rewrite}, inputPackage(""))
			k, reason := p.Kind()
			if k != KindInstantiated || p.Because() == nil || name == "fails" && (!errors.Is(p.Because(), why) || reason != ReasonTool) {
				t.Errorf("kind %s, %s: %v", k, reason, p.Because())
			}
			if got := do(t, p, "sum"); got != "199990001" {
				t.Error(got)
			}
		})
	}
}
