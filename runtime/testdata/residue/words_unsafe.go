package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
	"slices"
	"unsafe"
)

// What a secret is hidden by where it is not left as it is.
const (
	hidden  = 0xa5
	between = 0xee
)

// words are what is looked for, at every address: the four words of eight bytes that
// a secret has, the same hidden, and the eight of its bytes with another byte after
// each. They are kept so that neither they nor what is computed of them while they
// are looked for can be found itself: with a mask, and turned.
type words struct {
	mask  uint64
	known []uint64
	// Of a word somewhere in memory four bytes at a multiple of four are a part. Those
	// parts are kept with a mask of their own, by half of their bits.
	part   uint32
	likely [65536 / 64]uint64
}

func newWords(shares string) (*words, error) {
	b, err := hex.DecodeString(shares)
	if err != nil || len(b)%(2*secretSize) != 0 {
		return nil, errors.New("secrets: want two shares each")
	}
	w := &words{}
	if len(b) > 0 {
		w.mask = binary.LittleEndian.Uint64(b[5:])
		w.part = uint32(b[13]) * 0x01010101
	}
	for ; len(b) > 0; b = b[2*secretSize:] {
		one, other := b[:secretSize], b[secretSize:]
		for k := 0; k < secretSize; k += 8 {
			m := binary.LittleEndian.Uint64(one[k:]) ^ w.mask
			m ^= binary.LittleEndian.Uint64(other[k:])
			w.add(m)
			w.add(m ^ 0x0101010101010101*hidden)
		}
		for k := 0; k < secretSize; k += 4 {
			m := w.mask
			for i := range 4 {
				m ^= uint64(one[k+i]^other[k+i])<<(16*i) ^ between<<(16*i+8)
			}
			w.add(m)
		}
	}
	slices.Sort(w.known)
	return w, nil
}

// add adds a word, with the mask.
func (w *words) add(m uint64) {
	w.known = append(w.known, turned(m))
	m ^= w.mask ^ uint64(w.part)<<32 ^ uint64(w.part)
	for k := range 5 {
		p := m >> (8 * k) & 0xffff
		w.likely[p/64] |= 1 << (p & 63)
	}
}

func turned(m uint64) uint64 { return bits.RotateLeft64(m, 23) }

// load reads eight bytes of memory, but not those at address 0, which are never used.
func load(at uint64) uint64 { return *(*uint64)(unsafe.Pointer(uintptr(at))) }

// scan looks at memory, from a multiple of eight to one.
func (w *words) scan(p *places, where string, from, to uint64) {
	part := uint64(w.part)<<32 | uint64(w.part)
	for i, v := range unsafe.Slice((*uint64)(unsafe.Pointer(uintptr(from))), (to-from)/8) {
		if v == 0 { // no secret has a byte that is 0
			continue
		}
		v ^= part
		if w.likely[v&0xffff/64]&(1<<(v&63)) != 0 {
			w.check(p, where, from+8*uint64(i), from)
		}
		if w.likely[v>>32&0xffff/64]&(1<<(v>>32&63)) != 0 {
			w.check(p, where, from+8*uint64(i)+4, from)
		}
	}
}

// check looks at the words of which four bytes are a part.
func (w *words) check(p *places, where string, at, from uint64) {
	for k := range uint64(5) {
		if at-k < from || at-k == 0 {
			return
		}
		if _, ok := slices.BinarySearch(w.known, turned(load(at-k)^w.mask)); ok {
			p.found(where, at-k)
		}
	}
}

// look looks at what was read, which it clears.
func (w *words) look(p *places, where string, b []byte) {
	aligned := make([]uint64, len(b)/8+1)
	for i, c := range b {
		aligned[i/8] |= uint64(c) << (i % 8 * 8)
	}
	clear(b)
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(aligned))))
	w.scan(p, where, at, at+uint64(len(aligned))*8)
	clear(aligned)
}

// page returns memory at an address that Go did not give out.
func page(at uint64, n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(uintptr(at))), n) }
