package wasi

import (
	"bytes"
	"math"
	"testing"
)

// vectors puts iovecs into memory, pairs of pointer and length.
func (g *guest) vectors(pairs ...uint32) (ptr, n uint64) {
	var b []byte
	for _, v := range pairs {
		b = le.AppendUint32(b, v)
	}
	g.put(atVectors, b)
	return atVectors, uint64(len(pairs) / 2)
}

func TestReadWrite(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	p, n := c.vectors(atData, 3, atData+100, 0, atData+200, 5)
	c.ok("fd_read", fd, p, n, atResult)
	if got := string(c.bytes(atData, 3)) + string(c.bytes(atData+200, 5)); got != "old cont" || c.u32(atResult) != 8 {
		t.Errorf("read %q, %d bytes", got, c.u32(atResult))
	}
	if got, _ := c.read(fd, 100); got != "ent\n" {
		t.Errorf("read %q", got)
	}
	c.ok("fd_seek", fd, 4, seekStart, atResult)
	c.put(atData, []byte("NEWCONT"))
	p, n = c.vectors(atData, 3, atData+3, 4)
	c.ok("fd_write", fd, p, n, atResult)
	if c.u32(atResult) != 7 {
		t.Errorf("wrote %d bytes", c.u32(atResult))
	}
	c.ok("fd_pread", fd, p, n, 8, atResult)
	if got := c.bytes(atData, c.u32(atResult)); string(got) != "ONT\n" {
		t.Errorf("read %q", got)
	}
	c.put(atData, []byte("abcdefg"))
	c.ok("fd_pwrite", fd, p, n, 0, atResult)
	c.ok("fd_tell", fd, atResult)
	if c.u64(atResult) != 11 {
		t.Errorf("offset %d", c.u64(atResult))
	}
	c.want(eINVAL, "fd_pread", fd, p, n, 1<<63, atResult)
	c.want(eINVAL, "fd_pwrite", fd, p, n, 1<<63, atResult)
	c.want(eFBIG, "fd_pwrite", fd, p, n, math.MaxInt64, atResult)
	c.ok("fd_seek", fd, 0, seekStart, atResult)
	if got, _ := c.read(fd, 100); got != "abcdefgCONT\n" {
		t.Errorf("read %q", got)
	}
}

// TestAppend: a descriptor that appends writes to the end, wherever it reads,
// and pwrite does not.
func TestAppend(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "dir/inner", 0, rightRead|rightWrite, flagAppend)
	c.mustWrite(fd, "more\n")
	c.ok("fd_tell", fd, atResult)
	if c.u64(atResult) != 11 {
		t.Errorf("offset %d", c.u64(atResult))
	}
	c.put(atData, []byte("I"))
	p, n := c.vector(1)
	c.ok("fd_pwrite", fd, p, n, 0, atResult)
	c.ok("fd_seek", fd, 0, seekStart, atResult)
	c.ok("fd_fdstat_set_flags", fd, 0)
	c.mustWrite(fd, "IN")
	c.ok("fd_fdstat_set_flags", fd, flagAppend)
	c.mustWrite(fd, "end")
	c.ok("fd_seek", fd, 0, seekStart, atResult)
	if got, _ := c.read(fd, 100); got != "INner\nmore\nend" {
		t.Errorf("read %q", got)
	}
}

// TestEmptyTransfers: what a descriptor cannot do it cannot do with nothing.
func TestEmptyTransfers(t *testing.T) {
	c := begin(t, writer, Options{})
	reading := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	writing := c.mustOpen(fdVolume, "file", 0, rightWrite, 0)
	for _, n := range []uint64{0, 1} {
		c.vector(0)
		c.ok("fd_read", reading, atVectors, n, atResult)
		c.want(eBADF, "fd_write", reading, atVectors, n, atResult)
		c.want(eBADF, "fd_pwrite", reading, atVectors, n, 0, atResult)
		c.want(eBADF, "fd_read", writing, atVectors, n, atResult)
		c.want(eBADF, "fd_pread", writing, atVectors, n, 0, atResult)
		c.ok("fd_write", writing, atVectors, n, atResult)
		c.want(eISDIR, "fd_read", fdVolume, atVectors, n, atResult)
		c.want(eISDIR, "fd_write", fdVolume, atVectors, n, atResult)
	}
	c.unchanged()
}

// TestVectors: hostile lists are refused before a byte moves.
func TestVectors(t *testing.T) {
	var out bytes.Buffer
	c := begin(t, writer, Options{Stdout: &out})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	for _, s := range []struct {
		name   string
		pairs  []uint32
		ptr, n uint64
		result uint64
		want   errno
	}{
		{"list beyond the memory", nil, 0x10000, 1, atResult, eFAULT},
		{"list across the end", nil, 0x10000 - 4, 1, atResult, eFAULT},
		{"list with a length that overflows", nil, atVectors, 1 << 29, atResult, eINVAL},
		{"list too long", nil, atVectors, maxVectors + 1, atResult, eINVAL},
		{"buffer beyond the memory", []uint32{0x10000, 1}, atVectors, 1, atResult, eFAULT},
		{"buffer that overflows", []uint32{0xffffffff, 0xffffffff}, atVectors, 1, atResult, eFAULT},
		{"second buffer beyond the memory", []uint32{atData, 1, 0x10000, 1}, atVectors, 2, atResult, eFAULT},
		{"result beyond the memory", []uint32{atData, 1}, atVectors, 1, 0x10000 - 3, eFAULT},
	} {
		t.Run(s.name, func(t *testing.T) {
			if s.pairs != nil {
				c.vectors(s.pairs...)
			}
			for _, f := range []string{"fd_read", "fd_write"} {
				for _, d := range []uint64{fd, 1} {
					if f == "fd_read" && d == 1 {
						continue
					}
					c.want(s.want, f, d, s.ptr, s.n, s.result)
				}
			}
			c.want(s.want, "fd_pread", fd, s.ptr, s.n, 0, s.result)
			c.want(s.want, "fd_pwrite", fd, s.ptr, s.n, 0, s.result)
		})
	}
	if out.Len() > 0 {
		t.Errorf("output %q", out.String())
	}
	c.unchanged()
}

// TestSameBuffer: a list may name a buffer more than once, and not more than
// the memory has bytes.
func TestSameBuffer(t *testing.T) {
	var out bytes.Buffer
	g := start(t, Options{Stdout: &out})
	var pairs []uint32
	for range maxVectors {
		pairs = append(pairs, 0, 0x10000/maxVectors)
	}
	p, n := g.vectors(pairs...)
	g.ok("fd_write", 1, p, n, atResult)
	if g.u32(atResult) != 0x10000 || out.Len() != 0x10000 {
		t.Errorf("%d bytes, %d told", out.Len(), g.u32(atResult))
	}
	pairs[1]++
	p, n = g.vectors(pairs...)
	g.want(eINVAL, "fd_write", 1, p, n, atResult)
}
