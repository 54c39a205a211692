package wasmbin

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// memoryOf returns the memory of a new instance, and how many data segments the module has.
func memoryOf(t rapid.TB, module []byte) ([]byte, int) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(context.Background())
	m, err := r.Instantiate(context.Background(), module)
	if err != nil {
		t.Fatal(err)
	}
	memory, _ := m.Memory().Read(0, m.Memory().Size())
	sections, err := split(module)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range sections {
		if s.id == sectionData {
			n = int((&reader{b: s.body}).u32())
		}
	}
	return bytes.Clone(memory), n
}

// withData assembles a module of nothing but two pages and segments in that order.
func withData(data map[uint32][]byte, order []uint32) []byte {
	body := w.Uint(uint64(len(data)))
	for _, at := range order {
		body = append(append(append(body, 0), w.I32Const(int32(at))...), opEnd)
		body = append(append(body, w.Uint(uint64(len(data[at])))...), data[at]...)
	}
	return appendSection(w.Module{Memory: [2]uint32{2, 0}}.Encode(), sectionData, body)
}

// TestJoinKeepsMemory: a module with joined segments begins with the same memory.
func TestJoinKeepsMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := map[uint32][]byte{}
		at := uint32(0)
		for range rapid.IntRange(0, 30).Draw(t, "segments") {
			at += uint32(rapid.SampledFrom([]int{0, 1, 8, maxGap - 1, maxGap, maxGap + 1, 3000}).Draw(t, "gap"))
			b := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "bytes")
			data[at] = b
			at += uint32(len(b)) - uint32(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 1}).Draw(t, "overlap"))
		}
		order := slices.Sorted(maps.Keys(data))
		if rapid.Bool().Draw(t, "permuted") {
			order = rapid.Permutation(order).Draw(t, "order")
		}
		module := withData(data, order)
		joined, err := Join(module)
		if err != nil {
			t.Fatal(err)
		}
		was, before := memoryOf(t, module)
		is, after := memoryOf(t, joined)
		if !bytes.Equal(was, is) || after > before {
			t.Fatalf("%d segments became %d, same memory: %t", before, after, bytes.Equal(was, is))
		}
		again, err := Join(joined)
		if err != nil || !bytes.Equal(again, joined) {
			t.Fatalf("joined twice: %v", err)
		}
	})
}

func TestJoin(t *testing.T) {
	near := map[uint32][]byte{8: {1, 2}, 20: {3}, 20 + maxGap + 2: {4}, 20 + maxGap + 3 + maxGap: {5}}
	joined, err := Join(withData(near, slices.Sorted(maps.Keys(near))))
	if err != nil {
		t.Fatal(err)
	}
	if _, n := memoryOf(t, joined); n != 2 {
		t.Errorf("%d segments, want those at 8 and %d", n, 20+maxGap+2)
	}
	for name, body := range map[string][]byte{
		"passive":         {1, 1, 1, 'x'},
		"of a global":     {1, 0, 0x23, 0, 0x0b, 1, 'x'},
		"over each other": {2, 0, 0x41, 8, 0x0b, 2, 'x', 'x', 0, 0x41, 9, 0x0b, 1, 'y'},
	} {
		module := appendSection(slices.Clone(header), sectionData, body)
		if got, err := Join(module); err != nil || !bytes.Equal(got, module) {
			t.Errorf("%s: %v, changed: %t", name, err, !bytes.Equal(got, module))
		}
	}
	counted := appendSection(appendSection(slices.Clone(header), sectionDataCount, []byte{2}), sectionData, []byte{2, 0, 0x41, 0, 0x0b, 1, 'x', 0, 0x41, 8, 0x0b, 1, 'y'})
	if got, err := Join(counted); err != nil || !bytes.Equal(got, counted) {
		t.Errorf("counted: %v", err)
	}
}

func FuzzJoin(f *testing.F) {
	f.Add(w.Module{Memory: [2]uint32{1, 0}, Data: map[uint32][]byte{8: {1}, 16: {2}}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := Join(b); (out == nil) == (err == nil) && len(b) > 0 {
			t.Errorf("%d bytes and %v", len(out), err)
		}
	})
}
