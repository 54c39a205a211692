package runtime

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// recursive is a function that calls itself twice by code, n levels deep.
func recursive(call []byte) w.Func {
	half := w.Seq(w.LocalGet(0), w.I32Const(-1), w.I32Add, call)
	return w.Func{Params: []byte{w.I32}, Body: w.Seq(w.LocalGet(0), w.If, half, half, w.End)}
}

// endless are guests that run for longer than anybody waits, each by other means.
var endless = map[string]func() []byte{
	"loop without body":  func() []byte { return command("", "", w.Forever) },
	"recursion":          exponential,
	"loop of a br_table": func() []byte { return command("", "", w.Seq(w.Loop, w.I32Const(0), w.BrTable(3), w.End)) },
	"tight loop": func() []byte {
		return command("", "", w.Seq(w.I32Const(1), w.Call(imports+1)), w.Func{Params: []byte{w.I32}, Body: w.Seq(
			w.Loop, w.LocalGet(0), w.I32Const(3), w.I32Add, w.LocalSet(0), w.I32Const(1), w.BrIf(0), w.End)})
	},
	"mutual recursion": func() []byte {
		return command("", "", w.Seq(w.I32Const(60), w.Call(imports+1)), recursive(w.Call(imports+2)), recursive(w.Call(imports+1)))
	},
	"recursion through a table": func() []byte {
		m := w.Module{
			Funcs: append(append([]w.Func{}, wasiImports...),
				w.Func{Name: "_start", Body: w.Seq(w.I32Const(0), []byte{0xd2}, w.Uint(imports+1), []byte{0x26, 0}, w.I32Const(60), w.Call(imports+1))},
				recursive(w.Seq(w.I32Const(0), []byte{0x11}, w.Uint(imports+1), []byte{0})),
				w.Func{Name: "declared"}),
			Memory: [2]uint32{1, 0},
			Table:  [2]uint32{1, 1},
		}
		m.Funcs[imports+1].Name = "fib" // exported, so that it may be referred to
		return m.Encode()
	},
	"memory.fill in a loop": func() []byte {
		m := w.Module{
			Funcs: append(append([]w.Func{}, wasiImports...), w.Func{Name: "_start", Body: w.Seq(
				w.Loop, w.I32Const(0), w.I32Const(7), w.I32Const(12<<20), w.MemoryFill, []byte{0x0c, 0}, w.End)}),
			Memory: [2]uint32{200, 0},
		}
		return m.Encode()
	},
	"memory.copy in a row": func() []byte {
		m := w.Module{
			Funcs: append(append([]w.Func{}, wasiImports...), w.Func{Name: "_start", Body: w.Repeat(3500,
				w.I32Const(0), w.I32Const(7), w.I32Const(12<<20), w.MemoryCopy)}),
			Memory: [2]uint32{200, 0},
		}
		return m.Encode()
	},
	"long straight code": func() []byte {
		return command("", "", w.Seq(w.Loop, w.I32Const(8), w.Call(imports+1), w.Drop, []byte{0x0c, 0}, w.End), w.Func{
			Params: []byte{w.I32}, Results: []byte{w.I32},
			Body: w.Seq(w.LocalGet(0), w.Repeat(50_000, w.LocalGet(0), w.I32Add, w.LocalGet(0), []byte{0x6c})),
		})
	},
}

// TestEndlessGuestsStop: each is stopped soon after its deadline.
func TestEndlessGuestsStop(t *testing.T) {
	e := newEngine(t, Observer{})
	for name, module := range endless {
		t.Run(name, func(t *testing.T) {
			p := pack(module(), tool.Command, readOnly)
			p.Manifest.Limits.Timeout = 200 * time.Millisecond
			loaded, _ := load(t, e, p)
			start := time.Now()
			r := loaded.Call(t.Context(), Request{Tool: "t"})
			late := time.Since(start) - p.Manifest.Limits.Timeout
			if t.Logf("%s: late by %v, %d of fuel", name, late, r.Fuel); r.Outcome != Timeout {
				t.Errorf("%s, %v", r.Outcome, r.Err)
			}
			if late > 3*time.Second { // the machine is not the test's own
				t.Errorf("late by %v", late)
			}
		})
	}
}

var spin = flag.Bool("spin", false, "be the process of TestSpinningHoldsNothingUp")

// TestSpinningHoldsNothingUp has guests spin on all processors, and on more, while
// the garbage collector stops the world, in a process of its own: where one cannot
// be stopped, no timer in its process runs either.
func TestSpinningHoldsNothingUp(t *testing.T) {
	if *spin {
		spinning(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self, "-test.run=^TestSpinningHoldsNothingUp$", "-test.v", "-spin")
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", n))
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("GOMAXPROCS=%d: %v: %s", n, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "collections") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func spinning(t *testing.T) {
	e := newEngine(t, Observer{})
	var wg sync.WaitGroup
	for _, name := range []string{"loop without body", "tight loop", "mutual recursion", "memory.fill in a loop"} {
		p := pack(endless[name](), tool.Command, readOnly)
		p.Manifest.Limits.Timeout = time.Second
		loaded, _ := load(t, e, p)
		wg.Go(func() {
			if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != Timeout {
				t.Errorf("%s: %s, %v", name, r.Outcome, r.Err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			if t.Logf("GOMAXPROCS=%d: %d collections", goruntime.GOMAXPROCS(0), n); n < 3 {
				t.Errorf("%d collections in a second", n)
			}
			return
		default:
			goruntime.GC()
		}
	}
}
