//go:build wasip1

package sdk

import (
	"math/rand/v2"
	"unsafe"
)

// The state of Go's generator, which math/rand, math/rand/v2, maphash and the order
// of maps draw from, is part of the memory that the host puts back for each call.
// It cannot be reached by any API, so it is looked for among the variables of the
// program, once, and believed when it does what such a state does.
//
// chacha is internal/chacha8rand.State, followed by runtime.m.cheaprand.
//
//	buf [32]uint64    values, of which i were drawn
//	seed [4]uint64
//	i, n, c uint32    n values can be drawn; c counts blocks, in steps of 4
type chacha struct {
	buf     [32]uint64
	seed    [4]uint64
	i, n, c uint32
	_       uint32
	cheap   [2]uint32 // what select and the scheduler draw from
}

const (
	lastBlock = 12 // c of the block after which the generator seeds itself
	seedWords = 4  // which it does with so many values at the end of that block
)

var (
	generator *chacha // nil: not found yet
	cheap     bool    // what follows it is what is expected there
)

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(buf *byte, n uint32) uint32

// reseed gives the generator a seed from the host. It returns 1 where the generator
// was not found.
//
//go:wasmexport sandboxd_reseed
func reseed() int32 {
	if generator == nil {
		if generator = findGenerator(); generator == nil {
			return 1
		}
		cheap = generator.drawsCheaply()
		warm() // the host makes its image after the first seed
	}
	var seed [5]uint64
	if randomGet((*byte)(unsafe.Pointer(&seed)), uint32(unsafe.Sizeof(seed))) != 0 {
		return 1
	}
	generator.plant([seedWords]uint64(seed[:]))
	if cheap {
		generator.cheap = [2]uint32{uint32(seed[4]) | 1, uint32(seed[4] >> 32)} // not both 0
	}
	return 0
}

// plant makes the generator begin anew from the seed, at the next draw: it is what
// it would do by itself after its last block.
func (g *chacha) plant(seed [seedWords]uint64) {
	copy(g.buf[len(g.buf)-seedWords:], seed[:])
	g.c, g.n, g.i = lastBlock, uint32(len(g.buf)), uint32(len(g.buf))
}

// findGenerator returns the state of the generator, nil where there is none that
// behaves as one of this version of Go.
func findGenerator() *chacha {
	for range 64 {
		drawn := ^rand.Uint64() // in no memory but the generator's as it is
		words := variables()
		for at, w := range words {
			if w != ^drawn {
				continue
			}
			for i := range min(at+1, len(chacha{}.buf)) {
				if g := stateAt(words[at-i:]); g != nil && int(g.i) == i+1 && g.draws() {
					return g
				}
			}
		}
	}
	return nil
}

// variables returns the memory from the first page of the program up to its heap.
func variables() []uint64 {
	const from = 4096
	heap := new([1 << 16]byte)
	end := uintptr(unsafe.Pointer(heap))
	first := unsafe.Add(unsafe.Pointer(heap), -int(end-from))
	return unsafe.Slice((*uint64)(first), (end-from)/8)
}

// stateAt returns what begins with the words as a state, where it could be one.
func stateAt(words []uint64) *chacha {
	if uintptr(len(words))*8 < unsafe.Sizeof(chacha{}) {
		return nil
	}
	g := (*chacha)(unsafe.Pointer(&words[0]))
	full := g.n == uint32(len(g.buf)) && g.c < lastBlock && g.c%4 == 0
	last := g.n == uint32(len(g.buf)-seedWords) && g.c == lastBlock
	if g.i > g.n || !full && !last {
		return nil
	}
	return g
}

// draws reports whether this is what values are drawn from, and whether planting a
// seed makes it draw what a generator of that seed does. Where it does not nothing
// is changed.
func (g *chacha) draws() bool {
	for range 4 {
		if g.i < g.n {
			if i, next := g.i, g.buf[g.i]; rand.Uint64() != next || g.i != i+1 {
				return false
			}
		} else if rand.Uint64() != g.buf[0] || g.i != 1 {
			return false
		}
	}
	was := *g
	var seed [32]byte
	var words [seedWords]uint64
	for i := range seed {
		seed[i] = byte(i*7 + 1)
		words[i/8] |= uint64(seed[i]) << (i % 8 * 8)
	}
	g.plant(words)
	same := rand.NewChaCha8(seed)
	for range 300 { // through all blocks, and the seeding after them
		if rand.Uint64() != same.Uint64() {
			*g = was
			return false
		}
	}
	return true
}

// drawsCheaply reports whether the words after the state are those that the
// scheduler draws from: starting goroutines takes them some steps on.
func (g *chacha) drawsCheaply() bool {
	a, b := g.cheap[0], g.cheap[1]
	done := make(chan struct{})
	for range 4 {
		go func() { done <- struct{}{} }()
		<-done
	}
	for range 64 {
		if a, b = b, cheapStep(a, b); a == g.cheap[0] && b == g.cheap[1] {
			return true
		}
	}
	return false
}

// cheapStep is the xorshift64+ of runtime.cheaprand.
func cheapStep(s1, s0 uint32) uint32 {
	s1 ^= s1 << 17
	return s1 ^ s0 ^ s1>>7 ^ s0>>16
}
