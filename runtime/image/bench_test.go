package image

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkReset writes to pages and puts them back.
func BenchmarkReset(b *testing.B) {
	page := os.Getpagesize()
	i := newImage(b, patchy(66))
	for _, method := range Methods() {
		for _, dirty := range []int{0, 1, 2, 8, 32, 128, 512, 1000} {
			b.Run(fmt.Sprintf("%s/dirty=%d", method, dirty), func(b *testing.B) {
				m, g := begin(b, Options{Limit: 66 * wasmPage, Image: i, Method: method}, 66*wasmPage)
				if err := m.Adopt(g); err != nil {
					b.Fatal(err)
				}
				step := len(g.buf)
				if dirty > 0 {
					step = len(g.buf) / dirty / page * page
				}
				b.ReportAllocs()
				for b.Loop() {
					for at := range dirty {
						g.buf[at*step]++
					}
					if _, err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMemory makes a memory, adopts it and releases it.
func BenchmarkMemory(b *testing.B) {
	i := newImage(b, patchy(66))
	for _, method := range i.Methods() {
		b.Run(string(method), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := NewMemory(Options{Limit: 256 << 20, Image: i, Method: method})
				if err != nil {
					b.Fatal(err)
				}
				g := &guest{memory: m, buf: m.Reallocate(wasmPage)}
				if err := m.Adopt(g); err != nil {
					b.Fatal(err)
				}
				if err := m.Release(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
