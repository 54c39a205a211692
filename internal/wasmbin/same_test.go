package wasmbin

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/internal/enough"
)

// ran is what running a module came to.
type ran struct {
	log         string // of all calls
	fuel        int64
	checkpoints int
}

// bounded is a memory of at most so many bytes: the maximum that a module declares
// is held to by who allocates, once it is rewritten.
type bounded struct {
	most uint64
	b    []byte
}

func (m *bounded) Allocate(_, _ uint64) experimental.LinearMemory { return m }
func (m *bounded) Free()                                          {}

func (m *bounded) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	m.b = append(m.b, make([]byte, size-uint64(len(m.b)))...)
	return m.b
}

// runDrawn instantiates a module, calls each of its functions and says what they
// returned and left.
func runDrawn(t rapid.TB, config wazero.RuntimeConfig, b []byte, most uint64, quantum int64) (r ran) {
	ctx := experimental.WithMemoryAllocator(context.Background(), &bounded{most: most})
	rt := wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(16))
	defer rt.Close(ctx)
	m := newMeter(quantum)
	m.register(t, rt)
	i32 := []api.ValueType{api.ValueTypeI32}
	host := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
		stack[0] = uint64(uint32(stack[0])*3 + 1)
	})
	if _, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithGoModuleFunction(host, i32, i32).Export("f").Instantiate(ctx); err != nil {
		t.Fatalf("%v", err)
	}
	compiled, err := rt.CompileModule(ctx, b)
	if err != nil {
		t.Fatalf("%x does not compile: %v", b, err)
	}
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig())
	if err != nil {
		_, trap, _ := strings.Cut(err.Error(), " failed: ") // after the index of the start function
		line, _, _ := strings.Cut(trap, "\n")
		return ran{log: line}
	}
	var log strings.Builder
	for round := range 2 {
		for i := 0; ; i++ {
			f := mod.ExportedFunction(string(rune('0' + i)))
			if f == nil {
				break
			}
			args := make([]uint64, len(f.Definition().ParamTypes()))
			for n := range args {
				args[n] = uint64(round*1000 + n + 3)
			}
			results, err := f.Call(ctx, args...)
			line := ""
			if err != nil {
				line, _, _ = strings.Cut(err.Error(), "\n")
			}
			fmt.Fprintln(&log, i, results, line, state(mod))
		}
	}
	return ran{log.String(), m.total(mod), m.checkpoints}
}

// state sums up the memory and the globals of a module.
func state(mod api.Module) string {
	h := fnv.New64a()
	all, _ := mod.Memory().Read(0, mod.Memory().Size())
	h.Write(all)
	s := fmt.Sprintf("%d bytes %x", len(all), h.Sum64())
	for i := 0; ; i++ {
		g := mod.ExportedGlobal(fmt.Sprintf("g%d", i))
		if g == nil {
			return s
		}
		s += fmt.Sprintf(" %x", g.Get())
	}
}

// TestSame runs modules as they were drawn and rewritten: they return, leave and
// trap with the same; and what they spend does not depend on how often they are
// asked.
func TestSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawModule(rt).b
		w, err := Rewrite(b, Options{MaxMemory: 16, MaxTables: 1, MaxTable: 1 << 20})
		if err != nil {
			rt.Fatalf("%x: %v", b, err)
		}
		was := runDrawn(rt, wazero.NewRuntimeConfigInterpreter(), b, math.MaxUint32, 0)
		often := runDrawn(rt, wazero.NewRuntimeConfigInterpreter(), w.Module, w.MaxMemory, 100)
		compiled := runDrawn(rt, wazero.NewRuntimeConfig(), w.Module, w.MaxMemory, quantum)
		for name, is := range map[string]ran{"interpreted": often, "compiled": compiled} {
			if is.log != was.log {
				rt.Fatalf("%x became %x\nwas\n%s%s\n%s", b, w.Module, was.log, name, is.log)
			}
		}
		if often.fuel != compiled.fuel {
			rt.Fatalf("%x: %d units with %d checkpoints, %d with %d", b, often.fuel, often.checkpoints, compiled.fuel, compiled.checkpoints)
		}
	})
}

// TestValid changes bytes of modules, most by little, as that makes other indices:
// the rewritten module is valid if and only if the module is.
func TestValid(t *testing.T) {
	o := Options{MaxMemory: 16, MaxTables: 4, MaxTable: 1000}
	accepted, refused := 0, 0
	enough.Check(t, func(rt *rapid.T) {
		whole := drawModule(rt).b
		for range 20 {
			b := append([]byte(nil), whole...)
			for range rapid.IntRange(0, 2).Draw(rt, "changes") {
				at := rapid.IntRange(len(header), len(b)-1).Draw(rt, "at")
				little := rapid.Map(rapid.IntRange(-2, 2), func(n int) byte { return b[at] + byte(n) })
				b[at] = rapid.OneOf(little, little, rapid.Byte()).Draw(rt, "byte")
			}
			w, err := Rewrite(b, o)
			if err != nil {
				continue
			}
			was, is := valid(t, b), valid(t, w.Module)
			if was != is {
				rt.Fatalf("%x became %x: valid %v, then %v", b, w.Module, was, is)
			}
			if is {
				accepted++
			} else {
				refused++
			}
		}
	}, func() string {
		if accepted == 0 || refused == 0 {
			return fmt.Sprintf("%d valid, %d not", accepted, refused)
		}
		return ""
	})
}
