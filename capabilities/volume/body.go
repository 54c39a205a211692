package volume

import (
	"errors"
	"io"
)

// chunkSize is the unit of copy-on-write, in bytes.
const chunkSize = 64 << 10

// body is the content of a file in an overlay: the first keep bytes of the
// base's file, overlaid by chunks; what neither covers reads as zeros.
type body struct {
	keep   int64 // bytes of the base that are still visible
	size   int64
	chunks map[int64][]byte // by offset / chunkSize; beyond a short one's end are zeros
}

// source gives the content that the first keep bytes come from.
type source func() (io.ReaderAt, error)

// inherited returns how many bytes of chunk i come from the base while the
// chunk has not been copied.
func (b *body) inherited(i int64) int {
	return int(min(max(b.keep-i*chunkSize, 0), chunkSize))
}

// readAt fills p, all of which lies within the size.
func (b *body) readAt(src source, p []byte, off int64) error {
	for len(p) > 0 {
		i, at := off/chunkSize, int(off%chunkSize)
		var n int
		if c, ok := b.chunks[i]; ok {
			n = min(len(p), chunkSize-at)
			copied := copy(p[:n], c[min(at, len(c)):])
			clear(p[copied:n])
		} else {
			n = b.run(off, len(p))
			if err := b.readBase(src, p[:n], off); err != nil {
				return err
			}
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// run returns how many of the n bytes at off come before the next chunk.
func (b *body) run(off int64, n int) int {
	if len(b.chunks) == 0 {
		return n
	}
	end := off - off%chunkSize + chunkSize
	for end < off+int64(n) {
		if _, ok := b.chunks[end/chunkSize]; ok {
			break
		}
		end += chunkSize
	}
	return int(min(end-off, int64(n)))
}

// readBase fills p from the base, and with zeros beyond what is kept of it.
func (b *body) readBase(src source, p []byte, off int64) error {
	kept := int(min(max(b.keep-off, 0), int64(len(p))))
	clear(p[kept:])
	if kept == 0 {
		return nil
	}
	r, err := src()
	if err != nil {
		return err
	}
	return readFull(r, p[:kept], off)
}

// readFull fills p. A file that has become shorter than its stamp said has
// been changed by somebody else.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return ErrConflict
	}
	return err
}

// writeAt copies p in, chunk by chunk. take is asked for memory before it is
// used. It returns how many bytes were written.
func (b *body) writeAt(src source, take func(int64) error, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at := int(off % chunkSize)
		n := min(len(p)-done, chunkSize-at)
		c, err := b.chunk(src, take, off/chunkSize, at, at+n)
		if err != nil {
			return done, err
		}
		copy(c[at:], p[done:done+n])
		done, off = done+n, off+int64(n)
		b.size = max(b.size, off)
	}
	return done, nil
}

// chunk returns chunk i, long enough for the bytes from at to end to be
// written; the others hold what was there.
func (b *body) chunk(src source, take func(int64) error, i int64, at, end int) ([]byte, error) {
	c, held := b.chunks[i]
	need := max(end, len(c))
	if !held {
		need = max(need, b.inherited(i))
	}
	grow := roundUp(need) - cap(c)
	if grow > 0 {
		if err := take(int64(grow)); err != nil {
			return nil, err
		}
		c = append(make([]byte, 0, cap(c)+grow), c...)
	}
	c = c[:need]
	if n := b.inherited(i); !held && n > 0 && (at > 0 || end < n) {
		if err := b.readBase(src, c[:n], i*chunkSize); err != nil {
			return nil, giveBack(take, grow, err)
		}
	}
	if b.chunks == nil {
		b.chunks = map[int64][]byte{}
	}
	b.chunks[i] = c
	return c, nil
}

func giveBack(take func(int64) error, n int, err error) error {
	if n > 0 {
		_ = take(int64(-n)) // giving back is never refused
	}
	return err
}

// roundUp returns the capacity of a chunk that holds n bytes.
func roundUp(n int) int {
	c := 512
	for c < n {
		c *= 2
	}
	return c
}

// truncate sets the size. What it cuts off is gone: growing again shows zeros.
// It returns how many bytes of memory became free.
func (b *body) truncate(size int64) (freed int64) {
	b.keep = min(b.keep, size)
	if size < b.size && len(b.chunks) > 0 {
		left := map[int64][]byte{} // a map keeps the memory of what is deleted from it
		for i, c := range b.chunks {
			switch rest := size - i*chunkSize; {
			case rest <= 0:
				freed += int64(cap(c))
				continue
			case rest < int64(len(c)):
				clear(c[rest:])
				c = c[:rest]
			}
			left[i] = c
		}
		b.chunks = left
	}
	b.size = size
	return freed
}
