package image

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// eachSystem runs a test for the methods of this system, and of one without mappings.
func eachSystem(t *testing.T, test func(t *testing.T, s system, m Method)) {
	for name, s := range map[string]system{"here": probed(), "heap": plain()} {
		for _, m := range s.methods {
			t.Run(name+"/"+string(m), func(t *testing.T) { test(t, s, m) })
		}
	}
}

func imageOf(t testing.TB, s system, memory []byte) *Image {
	t.Helper()
	i, err := s.image(memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// drawMemory draws a memory of some pages, parts of which are not zero.
func drawMemory(rt *rapid.T) []byte {
	b := make([]byte, rapid.IntRange(0, 4).Draw(rt, "pages")*wasmPage)
	for range rapid.IntRange(0, 6).Draw(rt, "patches") {
		if len(b) > 0 {
			at := rapid.IntRange(0, len(b)-1).Draw(rt, "at")
			paint(b[at:min(len(b), at+rapid.IntRange(1, 20000).Draw(rt, "length"))], byte(rapid.IntRange(0, 255).Draw(rt, "value")))
		}
	}
	return b
}

func paint(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// TestAnythingThenReset draws an image and what a guest does to two memories of
// it, and puts them back: every byte is that of the image, what grows afterwards
// is zero, and the other memory is as it was.
func TestAnythingThenReset(t *testing.T) {
	eachSystem(t, func(t *testing.T, s system, m Method) {
		rapid.Check(t, func(rt *rapid.T) {
			want := drawMemory(rt)
			i, err := s.image(want)
			if err != nil {
				rt.Fatal(err)
			}
			o := Options{Limit: 8 * wasmPage, Image: i, Method: m, Keep: uint64(rapid.SampledFrom([]int{0, 1, 40000, 1 << 30}).Draw(rt, "keep"))}
			a, b := adoptedPair(rt, o, len(want))
			defer func() {
				if err := errors.Join(a.memory.Release(), b.memory.Release(), i.Close()); err != nil {
					rt.Error(err)
				}
			}()
			for range rapid.IntRange(1, 5).Draw(rt, "calls") {
				other := slices.Clone(b.buf)
				drawCall(rt, a)
				if !bytes.Equal(b.buf, other) {
					rt.Fatal("a call is seen in another memory")
				}
				if _, err := a.memory.Reset(); err != nil {
					rt.Fatal(err)
				}
				if !bytes.Equal(a.buf, want) || !bytes.Equal(b.buf, other) {
					rt.Fatal("a memory is not what it was")
				}
				if rapid.IntRange(0, 5).Draw(rt, "trim") == 0 {
					if err := a.memory.Trim(); err != nil || !bytes.Equal(a.buf, want) {
						rt.Fatalf("a trimmed memory is not the image: %v", err)
					}
				}
				a, b = b, a
			}
		})
	})
}

func adoptedPair(rt *rapid.T, o Options, size int) (a, b *guest) {
	var pair []*guest
	for range 2 {
		m, err := NewMemory(o)
		if err != nil {
			rt.Fatal(err)
		}
		g := &guest{memory: m, buf: m.Reallocate(0)}
		drawCall(rt, g)
		if err := m.Adopt(g); err != nil {
			rt.Fatal(err)
		}
		pair = append(pair, g)
	}
	return pair[0], pair[1]
}

// drawCall writes, reads and grows. What was grown has to be zero.
func drawCall(rt *rapid.T, g *guest) {
	for range rapid.IntRange(0, 5).Draw(rt, "steps") {
		switch rapid.IntRange(0, 3).Draw(rt, "step") {
		case 0:
			before := len(g.buf)
			if _, ok := g.Grow(uint32(rapid.IntRange(1, 4).Draw(rt, "grow"))); ok {
				if !bytes.Equal(g.buf[before:], make([]byte, len(g.buf)-before)) {
					rt.Fatal("what was grown is not zero")
				}
			}
		case 1, 2:
			if len(g.buf) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(g.buf)-1).Draw(rt, "at")
			paint(g.buf[at:min(len(g.buf), at+rapid.IntRange(1, 9000).Draw(rt, "length"))], byte(rapid.IntRange(0, 255).Draw(rt, "value")))
		case 3:
			if len(g.buf) > 0 {
				_ = fmt.Sprint(slices.Max(g.buf[rapid.IntRange(0, len(g.buf)-1).Draw(rt, "from"):]))
			}
		}
	}
}

// TestResetCounts holds how many pages a reset names: those that differ.
func TestResetCounts(t *testing.T) {
	want := patchy(4)
	paint(want[:wasmPage], 5)
	eachSystem(t, func(t *testing.T, s system, method Method) {
		if method == MethodCopy {
			t.Skip("it looks at no page")
		}
		m, g := begin(t, Options{Limit: 9 * wasmPage, Image: imageOf(t, s, want), Method: method}, 0)
		if err := m.Adopt(g); err != nil {
			t.Fatal(err)
		}
		reset := func(what string, pages int) {
			t.Helper()
			if n, err := m.Reset(); err != nil || n != pages {
				t.Errorf("%s: %d pages, %v", what, n, err)
			}
		}
		reset("nothing", 0)
		private := m.Private()
		_ = slices.Max(g.buf)
		g.Grow(2)
		_ = slices.Max(g.buf)
		reset("reading", 0)
		if own := m.Private() - private; own != 0 && method == MethodScan {
			t.Errorf("reading made %d bytes the memory's own", own)
		}
		g.buf[5000]++
		reset("a byte", 1)
		g.buf[5000]++
		g.buf[5000]--
		reset("a byte and back", 0)
		g.buf[3], g.buf[wasmPage-1], g.buf[3*wasmPage+9] = 1, 1, 1
		reset("three pages", 3)
		g.Grow(1)
		g.buf[4*wasmPage+1]++
		g.buf[5*wasmPage-1]++
		if method != MethodCompare || len(s.methods) == len(heapMethods) {
			reset("two pages of what was grown", 2)
		} else {
			reset("what was grown is dropped unseen", 0)
		}
		reset("nothing again", 0)
	})
}

// TestUse holds what a memory answers that is used in the wrong way.
func TestUse(t *testing.T) {
	eachSystem(t, func(t *testing.T, s system, method Method) {
		i := imageOf(t, s, patchy(2))
		if _, err := NewMemory(Options{Limit: 1 * wasmPage, Image: i}); err == nil {
			t.Error("an image above the limit is taken")
		}
		if _, err := NewMemory(Options{Limit: 1<<16 - 1, Min: wasmPage}); err == nil {
			t.Error("a minimum above the limit is taken")
		}
		var no *MethodError
		if _, err := NewMemory(Options{Limit: 9 * wasmPage, Image: i, Method: "magic"}); !errors.As(err, &no) || no.Method != "magic" || !slices.Equal(no.Works, s.methods) {
			t.Errorf("a method that does not exist: %v", err)
		}
		m, g := begin(t, Options{Limit: 9 * wasmPage, Image: i, Method: method}, 0)
		if m.Method() != method {
			t.Errorf("method %s", m.Method())
		}
		if _, err := m.Reset(); err == nil {
			t.Error("reset before it was adopted")
		}
		if err := m.Adopt(g); err == nil {
			t.Error("adopted after an error")
		}
		m, g = begin(t, Options{Limit: 9 * wasmPage, Image: i, Method: method}, 0)
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := NewMemory(Options{Limit: 9 * wasmPage, Image: i}); !errors.Is(err, ErrClosed) {
			t.Errorf("a memory of a closed image: %v", err)
		}
		if err := m.Adopt(g); err != nil { // what was made before goes on
			t.Fatal(err)
		}
		g.buf[1]++
		if n, err := m.Reset(); err != nil || n == 0 {
			t.Errorf("%d pages, %v", n, err)
		}
		if err := errors.Join(m.Release(), m.Release(), i.Close()); err != nil {
			t.Error(err)
		}
		if _, err := m.Reset(); !errors.Is(err, ErrClosed) || m.Reallocate(wasmPage) != nil || m.Private() != 0 {
			t.Errorf("used after it was released: %v", err)
		}
	})
	m, g := begin(t, Options{Limit: wasmPage}, wasmPage)
	if err := m.Adopt(g); !errors.Is(err, ErrNoImage) {
		t.Errorf("a memory without an image: %v", err)
	}
	if _, err := New(make([]byte, 100)); err == nil {
		t.Error("an image of 100 bytes")
	}
}

// TestKeep holds that what a memory keeps of its own has a bound, and that pages
// which calls do not write any more are given back.
func TestKeep(t *testing.T) {
	want := patchy(20)
	for _, method := range []Method{MethodScan, MethodPagemap} {
		if !slices.Contains(Methods(), method) {
			continue
		}
		i := newImage(t, want)
		const keep = 4 * wasmPage
		m, g := begin(t, Options{Limit: 40 * wasmPage, Image: i, Method: method, Keep: keep}, 0)
		if err := m.Adopt(g); err != nil {
			t.Fatal(err)
		}
		call := func(bytes int) uint64 {
			t.Helper()
			for at := 0; at < bytes; at += 4096 {
				g.buf[at]++
			}
			if _, err := m.Reset(); err != nil || string(g.buf) != string(want) {
				t.Fatalf("not the image: %v", err)
			}
			return m.Private()
		}
		if p := call(keep); p != keep {
			t.Errorf("%s: %d bytes are its own", method, p)
		}
		if p := call(keep + 4096); p != 0 {
			t.Errorf("%s: above the bound it keeps %d bytes", method, p)
		}
		call(keep)
		for n := range 200 {
			if p := call(2 * 4096); p == 0 {
				t.Logf("%s: dropped after %d light calls", method, n+1)
				if n < 10 {
					t.Errorf("%s: dropped after %d light calls", method, n+1)
				}
				break
			} else if n == 199 {
				t.Errorf("%s: %d bytes are kept for ever", method, p)
			}
		}
		for range 200 { // what every call writes is kept
			if p := call(keep); p != keep {
				t.Fatalf("%s: %d bytes are kept of what every call writes", method, p)
			}
		}
	}
}

func TestResetAllocatesNothing(t *testing.T) {
	for _, method := range Methods() {
		m, g := begin(t, Options{Limit: 9 * wasmPage, Image: newImage(t, patchy(4)), Method: method}, 0)
		if err := m.Adopt(g); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			g.buf[1]++
			g.Grow(1)
			if _, err := m.Reset(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", method, n)
		}
	}
}
