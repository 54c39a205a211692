package image

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// guest stands for the engine: it does what Memory.Grow of wazero does.
type guest struct {
	api.Memory
	memory *Memory
	buf    []byte
}

func (g *guest) Size() uint32 { return uint32(len(g.buf)) }

func (g *guest) Grow(pages uint32) (uint32, bool) {
	before := uint32(len(g.buf) / wasmPage)
	b := g.memory.Reallocate(uint64(before+pages) * wasmPage)
	if b == nil {
		return 0, false
	}
	g.buf = b
	return before, true
}

// begin makes a memory of an image, as the engine does when it instantiates.
func begin(t testing.TB, o Options, least int) (*Memory, *guest) {
	t.Helper()
	m, err := NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Release(); err != nil {
			t.Error(err)
		}
	})
	g := &guest{memory: m}
	g.buf = m.Allocate(uint64(least), 1<<32).Reallocate(uint64(least))
	if g.buf == nil {
		t.Fatalf("no %d bytes", least)
	}
	return m, g
}

func newImage(t testing.TB, memory []byte) *Image {
	t.Helper()
	i, err := New(memory)
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

// patchy returns a memory with pages of numbers and pages of zeroes.
func patchy(pages int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, pages*wasmPage)
	for o := 0; o < len(b)*3/4; o += os.Getpagesize() {
		if r.IntN(3) > 0 {
			for k := range 64 {
				b[o+k*8] = byte(r.IntN(256))
			}
		}
	}
	return b
}

func TestResetsInEveryMethod(t *testing.T) {
	want := patchy(5)
	i := newImage(t, want)
	for _, method := range Methods() {
		t.Run(string(method), func(t *testing.T) {
			m, g := begin(t, Options{Limit: 9 * wasmPage, Image: i, Method: method}, 2*wasmPage)
			g.buf[7] = 9
			if err := m.Adopt(g); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(g.buf, want) {
				t.Fatal("an adopted memory is not the image")
			}
			for range 3 {
				g.buf[0]++
				g.buf[len(g.buf)-1]++
				if _, ok := g.Grow(2); !ok {
					t.Fatal("it does not grow")
				}
				if g.buf[len(g.buf)-1] != 0 {
					t.Fatal("what was grown is not zero")
				}
				g.buf[len(g.buf)-1] = 8
				n, err := m.Reset()
				if err != nil {
					t.Fatal(err)
				}
				if n < 3 && method != MethodCompare && method != MethodCopy {
					t.Errorf("%d pages put back, at least 3 were written", n)
				}
				if !bytes.Equal(g.buf, want) {
					t.Fatal("a memory that was put back is not the image")
				}
			}
		})
	}
}
