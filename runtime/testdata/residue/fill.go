package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
)

// What is left in the program's own data.
var (
	static   [40000]byte
	kept     [][]byte
	byName   = map[string][]byte{}
	pool     = sync.Pool{}
	files    []*os.File
	buffered = bufio.NewWriter(os.Stdout)
	waiting  = make(chan secret)
)

// write writes the secret as it is, in pieces, hidden and spread, as often as fits.
func (s *secret) write(to []byte) {
	for form := 0; len(to) > 2*secretSize; form++ {
		for i, b := range s {
			switch form % 4 {
			case 0:
				to[i] = b
			case 1:
				if i/8 == form/4%4 {
					to[i] = b
				}
			case 2:
				to[i] = b ^ hidden
			case 3:
				to[2*i], to[2*i+1] = b, between
			}
		}
		to = to[2*secretSize+1:] // also where nothing is aligned
	}
}

// pages returns memory with some of the secret in each page.
func (s *secret) pages(n int) []byte {
	b := make([]byte, n)
	for at := 0; at+4096 <= n; at += 4096 {
		s.write(b[at+at/4096%1000:][:5*secretSize])
	}
	return b
}

func fill(s secret, in arguments) {
	s.write(static[:])
	for _, n := range []int{32, 64, 100, 1000, 5000, 30_000, 100_000} {
		b := make([]byte, n)
		s.write(b)
		kept = append(kept, b)
		s.write(make([]byte, n/2)) // garbage
	}
	if in.Big {
		kept = append(kept, s.pages(3<<20))
	}
	byName[string(s[:])] = s[:]
	byName[hex.EncodeToString(s[:])] = s[8:16]
	pool.Put(&s)
	deep(&s, 40)
	go func() { // stands still, with the secret on its stack
		held := s
		waiting <- held
		held.write(static[:])
	}()
	buffered.Write(s[:])
	fmt.Fprintf(os.Stderr, "%s", s[:])
	os.Setenv("KEPT", hex.EncodeToString(s[:]))
	s.files(in.Answers)
	if growMemory(2) >= 0 {
		end := uint64(currentMemory()) << 16
		s.write(page(end-2<<16, 2<<16))
	}
}

//go:noinline
func deep(s *secret, depth int) byte {
	var here [500]byte
	s.write(here[:])
	if depth == 0 {
		return here[0]
	}
	return deep(s, depth-1) + here[depth]
}

// files leaves files with the secret open in scratch, some in place of the standard
// streams, and a folder that is being read.
func (s *secret) files(answers bool) {
	for i := range 6 {
		f, err := os.OpenFile(fmt.Sprintf("/tmp/%x%d", s[8*(i%4):8*(i%4)+8], i), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			continue
		}
		files = append(files, f)
		f.Write(s[:])
		f.Seek(int64(i), 0)
		if i < 3 && !(answers && i == 1) {
			fdRenumber(int32(f.Fd()), int32(i))
		}
	}
	os.Mkdir(fmt.Sprintf("/tmp/%x", s[:]), 0o700)
	if d, err := os.Open("/tmp"); err == nil {
		files = append(files, d)
		d.ReadDir(1)
	}
}
