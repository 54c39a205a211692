package image

import (
	"os"
	"slices"
	"testing"
)

// TestPlainMethodsWork: what asks the kernel for nothing works wherever there are
// mappings: the probe has no reason to find that it does not.
func TestPlainMethodsWork(t *testing.T) {
	s := probe(linux{})
	for _, m := range []Method{MethodCompare, MethodCopy} {
		if !slices.Contains(s.methods, m) {
			t.Errorf("%s does not work: %v do", m, s.methods)
		}
	}
}

// TestTrimReachesAll: a memory that once was large gives back what it had there, also
// when later calls were small.
func TestTrimReachesAll(t *testing.T) {
	const grown = 64
	for _, m := range []Method{MethodScan, MethodPagemap} {
		if !slices.Contains(probe(linux{}).methods, m) {
			continue
		}
		i, err := New(make([]byte, wasmPage))
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewMemory(Options{Limit: 2 * grown * wasmPage, Image: i, Method: m})
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{memory: a, buf: a.Reallocate(wasmPage)}
		if err := a.Adopt(g); err != nil {
			t.Fatal(err)
		}
		g.Grow(grown)
		paint(g.buf, 7)
		for range 2 { // the second one is small
			if _, err := a.Reset(); err != nil {
				t.Fatal(err)
			}
			g.buf[0] = 1
		}
		if n := owned(t, a); n < grown*wasmPage {
			t.Errorf("%s: %d bytes are kept: the test does not reach what it should", m, n)
		}
		if err := a.Trim(); err != nil {
			t.Fatal(err)
		}
		if n := owned(t, a); n != 0 {
			t.Errorf("%s: %d bytes of its own after it was trimmed", m, n)
		}
		if err := a.Release(); err != nil {
			t.Error(err)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

// owned returns how many bytes of a memory are its own, all that it may have.
func owned(t *testing.T, m *Memory) (n uint64) {
	t.Helper()
	s, page := m.space.(*mapped), uint64(os.Getpagesize())
	for at := uint64(0); at < s.usable; {
		regions, next, err := s.finder.find(s.kernel, s.backing.pagemap, s.area, at, s.usable, page)
		if err != nil || next <= at {
			t.Fatalf("%d after %d: %v", next, at, err)
		}
		for _, r := range regions {
			if !r.shared {
				n += r.to - r.from
			}
		}
		at = next
	}
	return n
}
