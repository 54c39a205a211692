package image

import (
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// TestStartUpRunsOnAnEmptyMemory instantiates the module over memories of an
// image: its start function traps where the image shows through, and what it
// and the data segments write is gone once the memory is adopted.
func TestStartUpRunsOnAnEmptyMemory(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.instantiate(t, Options{Limit: limit, Image: e.image, Method: m})
		if size := i.call(t, "size"); size != 2 {
			t.Errorf("%d pages before it is adopted", size)
		}
		if got := i.call(t, "read", 3<<16-4-1<<16); got != 0 {
			t.Errorf("the image shows through: %d", got)
		}
		if err := i.memory.Adopt(i.module.Memory()); err != nil {
			t.Fatal(err)
		}
		i.setGlobals()
		i.isImage(t)
		if got := i.call(t, "read", 3<<16-4); got != 77 {
			t.Errorf("the guest reads %d", got)
		}
	})
}

func TestGlobalsOfEachType(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		for range 100 {
			for range 3 {
				i.call(t, "count")
			}
			for name, v := range e.globals {
				if i.module.ExportedGlobal(name).Get() == v {
					t.Fatalf("%s did not change", name)
				}
			}
			i.reset(t)
			if got := i.call(t, "count"); int32(got) != -3 {
				t.Fatalf("the guest counts from %d", int32(got)-1)
			}
			i.reset(t)
		}
	})
}

// TestGrownMemoryShrinks grows, writes to the last byte, and grows again after it
// was put back: what is grown then is zero.
func TestGrownMemoryShrinks(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		for _, pages := range []uint64{1, 5, 2, 5} {
			if got := i.call(t, "grow", pages); got != 3 {
				t.Fatalf("grow answers %d", int32(got))
			}
			last := (3+pages)<<16 - 4
			if got := i.call(t, "read", last); got != 0 {
				t.Fatalf("what was grown holds %d", got)
			}
			i.call(t, "write", last, 1)
			i.call(t, "write", 3<<16, 1)
			i.reset(t)
			if _, err := i.try(t, "read", 3<<16); err == nil {
				t.Fatal("the guest reads above the image")
			}
			i.reset(t)
		}
	})
}

func TestLimits(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		if got := i.call(t, "grow", 6); int32(got) != -1 || !i.memory.Refused() {
			t.Errorf("above the limit: %d, refused %t", int32(got), i.memory.Refused())
		}
		i.reset(t)
		if i.memory.Refused() {
			t.Error("still refused after a reset")
		}
		i.call(t, "grow", 5)
		if i.memory.Refused() {
			t.Error("refused up to the limit")
		}
		declared := e.instantiate(t, Options{Limit: limit, Declared: 4 * wasmPage, Image: e.image, Method: m})
		if got := declared.call(t, "grow", 3); int32(got) != -1 || declared.memory.Refused() {
			t.Errorf("above the module's own maximum: %d, refused %t", int32(got), declared.memory.Refused())
		}
		if got := declared.call(t, "grow", 2); int32(got) != 2 {
			t.Errorf("up to the module's own maximum: %d", int32(got))
		}
	})
}

// TestLargestMemory grows to all that 32 bits reach, less a page, and back.
func TestLargestMemory(t *testing.T) {
	if len(probed().methods) == len(heapMethods) {
		t.Skip("memory would be needed for it")
	}
	e := newEngine(t, probed())
	i := e.adopted(t, "", 1<<32)
	if got := i.call(t, "grow", 1<<16-3); int32(got) != -1 || !i.memory.Refused() {
		t.Errorf("4 GiB: %d", int32(got))
	}
	if got := i.call(t, "grow", 1<<16-4); got != 3 {
		t.Fatalf("4 GiB less a page: %d", int32(got))
	}
	i.call(t, "write", 1<<32-1<<16-4, 9)
	i.reset(t)
}

func TestTrapThenReset(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		for range 50 {
			if _, err := i.try(t, "trap"); err == nil {
				t.Fatal("no trap")
			}
			if i.call(t, "read", 8) != 9 {
				t.Fatal("the trapping call wrote nothing")
			}
			i.reset(t)
			if got := i.call(t, "count"); int32(got) != -3 {
				t.Fatalf("it counts %d", int32(got))
			}
			i.reset(t)
		}
	})
}

// TestInterpreted is the same with the engine's interpreter, which systems have
// that it does not compile for.
func TestInterpreted(t *testing.T) {
	for _, m := range Methods() {
		e := newEngineOf(t, probed(), wazero.NewRuntimeConfigInterpreter())
		i := e.adopted(t, m, limit)
		for range 20 {
			i.call(t, "grow", 4)
			i.call(t, "write", 7<<16-4, 3)
			i.call(t, "count")
			if _, err := i.try(t, "trap"); err == nil {
				t.Fatal("no trap")
			}
			i.reset(t)
		}
	}
}

// TestCallIntoClosedInstance closes an instance while a call is in flight, which
// then writes and reads. Memory that the engine's Free unmapped would end the
// process here.
func TestCallIntoClosedInstance(t *testing.T) {
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		in, out := make(chan struct{}), make(chan struct{})
		e.wait = func() { close(in); <-out }
		done := make(chan error)
		late := i.module.ExportedFunction("late")
		go func() {
			_, err := late.Call(t.Context())
			done <- err
		}()
		<-in
		if err := i.module.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(out)
		var exit *sys.ExitError
		if err := <-done; err != nil && !errors.As(err, &exit) {
			t.Errorf("the call ended in %v", err)
		}
		e.wait = func() {}
		if _, err := late.Call(t.Context()); err != nil && !errors.As(err, &exit) {
			t.Errorf("a call into a closed instance: %v", err)
		}
		if _, err := i.memory.Reset(); !errors.Is(err, ErrClosed) {
			t.Errorf("reset of a closed instance: %v", err)
		}
		if err := i.memory.Adopt(i.module.Memory()); !errors.Is(err, ErrClosed) {
			t.Errorf("adopting a closed instance: %v", err)
		}
		if err := i.memory.Trim(); !errors.Is(err, ErrClosed) {
			t.Errorf("trimming a closed instance: %v", err)
		}
	})
}

// TestDeepStack holds that the stack of an overflow is the function object's: it
// is given back with it, and not before.
func TestDeepStack(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes memory and time")
	}
	e := newEngine(t, probed())
	i := e.adopted(t, "", limit)
	const much = 64 << 20
	before := live()
	if _, err := i.try(t, "deep"); err == nil {
		t.Fatal("the stack has no end")
	}
	kept := live() - before
	clear(i.calls)
	dropped := live() - before
	t.Logf("an overflow keeps %d MiB, %d MiB once the function object is dropped", kept>>20, dropped>>20)
	if kept < much || dropped > much {
		t.Errorf("kept %d, dropped %d bytes", kept, dropped)
	}
	i.reset(t)
	i.call(t, "write", 4, 4)
	i.reset(t)
}

// live returns the bytes of Go's heap that are in use.
func live() int64 {
	goruntime.GC()
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestManyCalls makes random calls on instances of one image in two goroutines,
// and compares every byte after each reset.
func TestManyCalls(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 200
	}
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		var wg sync.WaitGroup
		for worker := range uint64(2) {
			i := e.adopted(t, m, limit)
			wg.Go(func() {
				r := rand.New(rand.NewPCG(worker, 9))
				for range rounds {
					for range r.IntN(4) {
						_, _ = i.try(t, "write", uint64(r.IntN(4<<16)), uint64(r.Uint32()))
					}
					switch r.IntN(6) {
					case 0:
						i.call(t, "grow", uint64(r.IntN(5)))
						_, _ = i.try(t, "write", uint64(r.IntN(limit)), 1)
					case 1:
						_, _ = i.try(t, "trap")
					case 2:
						i.call(t, "count")
					case 3:
						if r.IntN(10) == 0 {
							if _, err := i.memory.Reset(); err != nil {
								t.Error(err)
								return
							}
							if err := i.memory.Trim(); err != nil {
								t.Error(err)
								return
							}
						}
					}
					if _, err := i.memory.Reset(); err != nil {
						t.Error(err)
						return
					}
					i.setGlobals()
					if string(i.bytes(t)) != string(e.want) {
						t.Error("the memory is not the image")
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestResetTime shows what a call and a reset take through the engine.
func TestResetTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	eachMethod(t, func(t *testing.T, e *engine, m Method) {
		i := e.adopted(t, m, limit)
		write := i.module.ExportedFunction("write")
		stack := []uint64{8, 9}
		var spent time.Duration
		const rounds = 2000
		for range rounds {
			stack[0], stack[1] = 8, 9
			if err := write.CallWithStack(t.Context(), stack); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := i.memory.Reset(); err != nil {
				t.Fatal(err)
			}
			spent += time.Since(start)
		}
		t.Logf("reset %v", spent/rounds)
	})
}
