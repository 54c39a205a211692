package wasmbin

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// sideBySide times functions in turn and returns the medians.
func sideBySide(rounds int, runs ...func()) []time.Duration {
	times := make([][]time.Duration, len(runs))
	for range rounds {
		for i, run := range runs {
			start := time.Now()
			run()
			times[i] = append(times[i], time.Since(start))
		}
	}
	var medians []time.Duration
	for _, list := range times {
		slices.Sort(list)
		medians = append(medians, list[len(list)/2])
	}
	return medians
}

const reactorSource = `package main

import "encoding/json"

type item struct {
	Name  string            ` + "`json:\"name\"`" + `
	Size  int               ` + "`json:\"size\"`" + `
	Tags  []string          ` + "`json:\"tags\"`" + `
	Attrs map[string]string ` + "`json:\"attrs\"`" + `
}

//go:wasmexport work
func work(n int32) int32 {
	sum := 0
	for range n {
		var list []item
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return -1
		}
		b, err := json.Marshal(list)
		if err != nil {
			return -2
		}
		sum += len(b)
	}
	return int32(sum)
}

const text = ` + "`" + `[{"name":"alpha","size":12,"tags":["a","b","c"],"attrs":{"x":"1","y":"2"}},{"name":"beta","size":99,"tags":[],"attrs":{"k":"some longer text with spaces"}}]` + "`" + `

func main() {}
`

var measure = flag.Bool("meter", false, "measure what checks cost (half a minute, on a quiet machine)")

// TestMeterCost holds the time that checks take to the goals of DESIGN.md.
func TestMeterCost(t *testing.T) {
	if !*measure {
		t.Skip("measures; run with -meter")
	}
	ctx := t.Context()
	modules := []struct {
		name string
		b    []byte
		f    string
		arg  uint64
		most float64
	}{
		{"a loop of 12 instructions", sumLoop(), "run", 1_000_000, 1.25},
		{"a loop over memory", memLoop(), "run", 1_000_000, 1.15},
		{"recursion", fib(), "fib", 25, 1.25},
		{"JSON in Go", buildGo(t, reactorSource, "-buildmode=c-shared"), "work", 1, 1.05},
	}
	for _, m := range modules {
		var runs []func()
		for _, b := range [][]byte{m.b, rewritten(t, m.b)} {
			r := wazero.NewRuntime(ctx)
			defer r.Close(ctx)
			newMeter(quantum).register(t, r)
			wasi_snapshot_preview1.MustInstantiate(ctx, r)
			c, err := r.CompileModule(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			mod, err := r.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
			if err != nil {
				t.Fatal(err)
			}
			f := mod.ExportedFunction(m.f)
			runs = append(runs, func() {
				if _, err := f.Call(ctx, m.arg); err != nil {
					t.Fatal(err)
				}
			})
		}
		d := sideBySide(3000, runs...)
		ratio := float64(d[1]) / float64(d[0])
		if t.Logf("%s: %v, %v: %.3f", m.name, d[0], d[1], ratio); ratio > m.most {
			t.Errorf("%s takes %.3f of the time, want at most %.2f", m.name, ratio, m.most)
		}
	}
}

// sumLoop sums i*i for i below its argument.
func sumLoop() []byte {
	return mod(
		sec(sectionType, vec(functype("\x7f", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionExport, vec(cat(str("run"), []byte{0, 0}))),
		sec(sectionCode, vec(sized(cat(vec([]byte{2, 0x7f}), []byte{
			0x03, 0x40, // loop
			0x20, 1, 0x20, 2, 0x20, 2, 0x6c, 0x6a, 0x21, 1, // s += i*i
			0x20, 2, 0x41, 1, 0x6a, 0x22, 2, 0x20, 0, 0x49, 0x0d, 0, // i++ < n
			0x0b, 0x20, 1, 0x0b,
		})))),
	)
}

// memLoop sums bytes of memory.
func memLoop() []byte {
	return mod(
		sec(sectionType, vec(functype("\x7f", "\x7f"))),
		sec(sectionFunction, vec(num(0))),
		sec(sectionMemory, vec([]byte{0, 1})),
		sec(sectionExport, vec(cat(str("run"), []byte{0, 0}))),
		sec(sectionCode, vec(sized(cat(vec([]byte{2, 0x7f}), []byte{
			0x03, 0x40, // loop
			0x20, 1, 0x20, 2, 0x41, 0xff, 0xff, 3, 0x71, 0x2d, 0, 0, 0x6a, 0x21, 1, // s += m[i&0xffff]
			0x20, 2, 0x41, 1, 0x6a, 0x22, 2, 0x20, 0, 0x49, 0x0d, 0, // i++ < n
			0x0b, 0x20, 1, 0x0b,
		})))),
	)
}
