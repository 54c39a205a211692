package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// Where the module of leaver keeps things besides those of other test guests.
const (
	atSaid    = 512
	atCounter = 600
	atRequest = 8192
	letterAt  = len(`{"tool":"`)
)

// actions are what a tool of leaver does after it has counted, by its letter, with
// what that comes to for a read-only tool.
var actions = map[string]struct {
	body    []byte
	outcome Outcome
}{
	"a": {nil, OK},
	"t": {w.Unreachable, ToolError},
	"g": {w.Seq(w.I32Const(3), w.MemoryGrow, w.Drop, w.I32Const(4<<16-4), w.I32Const(77), []byte{0x36, 2, 0}), OK},
	"m": {w.Seq(w.I32Const(1<<14), w.I32Const(0xaa), w.I32Const(3<<14), w.MemoryFill), OK},
	"s": {w.Seq(w.I32Const(1<<14), w.I32Const(0xaa), w.I32Const(3<<14), w.MemoryFill, w.Unreachable), ToolError},
	"r": {w.Call(imports + 2), Limit},
	"l": {w.Forever, Timeout},
	"x": {exit(7), ToolError},
	"v": {open("new", oflagCreate, rightWrite), Violation},
	"n": {w.Seq(w.I32Const(sleeps), w.Call(imports+3)), OK},
	"z": {w.Seq(w.I32Const(tooLong), w.Call(imports+3)), Timeout},
}

// What tools of leaver sleep, in seconds, and the limit that they have.
const (
	sleeps  = 30
	tooLong = 61
	timeout = time.Minute
)

// leaver assembles a module that counts its calls in globals of three types and in its
// memory, says the counts and the size of its memory, a digit each, and then does what
// its tool's letter stands for.
func leaver(abi tool.ABI) []byte {
	digit := func(at int32, value ...[]byte) []byte {
		return w.Seq(w.I32Const(atSaid+at), w.Seq(value...), w.I32Const('0'), w.I32Add, []byte{0x3a, 0, 0})
	}
	get := func(i byte) []byte { return []byte{0x23, i} }
	set := func(i byte) []byte { return []byte{0x24, i} }
	body := w.Seq(
		get(0), w.I32Const(1), w.I32Add, set(0),
		get(1), w.I64Const(1), []byte{0x7c}, set(1),
		get(2), []byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0xa0}, set(2), // f64.const 1; f64.add
		w.I32Const(atCounter), w.I32Const(atCounter), w.I32Load, w.I32Const(1), w.I32Add, []byte{0x36, 2, 0},
		digit(0, get(0)), digit(1, get(1), []byte{0xa7}), digit(2, get(2), []byte{0xaa}), // i32.wrap_i64; i32.trunc_f64_s
		digit(3, w.I32Const(atCounter), w.I32Load), digit(4, []byte{0x3f, 0}), // memory.size
		// What a call left beyond the memory, or filled in it.
		digit(5, w.I32Const(1<<14), []byte{0x2d, 0, 0}),
	)
	for letter, a := range actions {
		body = w.Seq(body, w.I32Const(atRequest+int32(letterAt)), []byte{0x2d, 0, 0}, w.I32Const(int32(letter[0])), []byte{0x46}, w.If, a.body, w.End)
	}
	poll := w.Func{Import: wasiModule, Name: "poll_oneoff", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}}
	read := w.Func{Import: wasiModule, Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}}
	m := w.Module{
		Memory:  [2]uint32{1, 0},
		Data:    map[uint32][]byte{atPath: []byte("new")},
		Globals: []w.Global{{Type: w.I32, Mutable: true, Init: w.I32Const(0)}, {Type: w.I64, Mutable: true, Init: w.I64Const(0)}, {Type: w.F64, Mutable: true, Init: []byte{0x44, 0, 0, 0, 0, 0, 0, 0, 0}}},
		Funcs:   append(append([]w.Func{}, wasiImports...), poll, read),
	}
	recursion := w.Func{Body: w.Call(imports + 2)}
	sleep := w.Func{Params: []byte{w.I32}, Body: w.Seq(
		w.I32Const(128+16), w.I32Const(1), []byte{0x36, 2, 0}, // of the monotonic clock
		w.I32Const(128+24), w.LocalGet(0), []byte{0xac}, w.I64Const(1e9), []byte{0x7e, 0x37, 3, 0}, // i64.extend_i32_s; i64.mul; i64.store
		w.I32Const(128), w.I32Const(256), w.I32Const(1), w.I32Const(atResult), w.Call(imports), w.Drop)}
	if abi == tool.Command {
		body = w.Seq(
			storeI32(atIovec, atRequest), storeI32(atIovec+4, 4096),
			w.I32Const(0), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(imports+1), w.Drop,
			body,
			storeI32(atIovec, atSaid), storeI32(atIovec+4, 6),
			w.I32Const(1), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(fdWrite), w.Drop)
		m.Funcs = append(m.Funcs, recursion, sleep, w.Func{Name: "_start", Body: body})
		return m.Encode()
	}
	m.Funcs = append(m.Funcs, recursion, sleep,
		w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(atRequest)},
		w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.Seq(body, w.I64Const(atSaid<<32|6))})
	return m.Encode()
}

// leaving loads the module of leaver, its tools read-only.
func leaving(t testing.TB, abi tool.ABI, o Options) (*Engine, *Package) {
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
	p := pack(leaver(abi), abi, readOnly)
	one := p.Manifest.Tools[0]
	p.Manifest.Tools = nil
	p.Manifest.Limits.Timeout = timeout
	for letter := range actions {
		one.Name = letter
		p.Manifest.Tools = append(p.Manifest.Tools, one)
	}
	return e, mustLoad(t, e, p, Binding{})
}

const fresh6 = "111110" // what a tool of leaver says on a fresh state

var abis = []tool.ABI{tool.Reactor, tool.Command}

// TestNoCallSeesAnother: however a call ends, the next one finds globals, memory and
// its size as they were before the first one.
func TestNoCallSeesAnother(t *testing.T) {
	for _, abi := range abis {
		for _, s := range strategies {
			_, p := leaving(t, abi, Options{Strategy: s})
			if k, why := p.Kind(); (k == KindNew) != (s != StrategyImage) {
				t.Errorf("%s: %s because of %q", s, k, why)
			}
			for letter, a := range actions {
				ctx, cancel := context.WithCancel(context.Background())
				if letter == "l" {
					ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
				}
				r := p.Call(ctx, Request{Tool: letter})
				cancel()
				if r.Outcome != a.outcome {
					t.Errorf("%s %s %s: %s, %v", abi, s, letter, r.Outcome, r.Err)
				}
				if r.Outcome == OK && textOf(t, r) != fresh6 {
					t.Errorf("%s %s %s says %s", abi, s, letter, textOf(t, r))
				}
				if got := said(t, p, "a"); got != fresh6 {
					t.Errorf("%s %s: after %s: %s", abi, s, letter, got)
				}
			}
		}
	}
}

// TestSleepsTakeNoTime of the host, and count against that of the call.
func TestSleepsTakeNoTime(t *testing.T) {
	for _, abi := range abis {
		for _, s := range strategies {
			_, p := leaving(t, abi, Options{Strategy: s})
			began := time.Now()
			if got := said(t, p, "n"); got != fresh6 {
				t.Error(got)
			}
			if took := time.Since(began); took > sleeps*time.Second/2 {
				t.Errorf("%s %s: a sleep took %v", abi, s, took)
			}
			r := p.Call(context.Background(), Request{Tool: "z"})
			if late, ok := errors.AsType[*TimeoutError](r.Err); r.Outcome != Timeout || !ok || late.Limit != timeout {
				t.Errorf("%s %s: %s, %v", abi, s, r.Outcome, r.Err)
			}
		}
	}
}

// TestLateCancellation: the end of one call's context never stops the next call.
func TestLateCancellation(t *testing.T) {
	_, p := leaving(t, tool.Reactor, Options{})
	rounds := 2000
	if testing.Short() {
		rounds = 300
	}
	for k := range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		timer := time.AfterFunc(time.Duration(k%100)*time.Microsecond, cancel)
		p.Call(ctx, Request{Tool: []string{"a", "l", "m"}[k%3]})
		go cancel()
		if got := said(t, p, "a"); got != fresh6 {
			t.Fatal(got)
		}
		timer.Stop()
		cancel()
	}
}

// TestCallersShareNothing: calls at one time are as alone as one after the other.
func TestCallersShareNothing(t *testing.T) {
	for _, abi := range abis {
		for _, s := range strategies {
			e, p := leaving(t, abi, Options{Strategy: s, Warm: 3 * (instanceBytes + 1<<20)})
			calls := 60
			if testing.Short() {
				calls = 15
			}
			var wg sync.WaitGroup
			for caller := range 8 {
				wg.Go(func() {
					for k := range calls {
						letter := []string{"a", "t", "g", "m", "s", "x", "v"}[(k+caller)%7]
						r := p.Call(context.Background(), Request{Tool: letter})
						if r.Outcome != actions[letter].outcome || r.Outcome == OK && textOf(t, r) != fresh6 {
							t.Errorf("%s %s %s: %s, %v", abi, s, letter, r.Outcome, r.Err)
							return
						}
					}
				})
			}
			wg.Wait()
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
			e.slots.Range(func(name, _ any) bool { t.Errorf("%s %s: instance %v is left", abi, s, name); return true })
			if e.warm.held != 0 || e.warm.oldest != nil || e.warm.newest != nil {
				t.Errorf("%s %s: %d bytes are held", abi, s, e.warm.held)
			}
		}
	}
}

// TestViolationOnEveryStrategy: the record of what a call tried is the same.
func TestViolationOnEveryStrategy(t *testing.T) {
	for _, s := range strategies {
		_, p := leaving(t, tool.Reactor, Options{Strategy: s})
		for range 2 {
			r := p.Call(context.Background(), Request{Tool: "v"})
			if r.Violation == nil || r.Violation.Operation != capabilities.OpCreate || len(r.All) != 1 {
				t.Errorf("%s: %+v", s, r.All)
			}
		}
	}
}
