package wasi

import (
	"context"
	"io"
	"math"

	"github.com/sandboxd/sandboxd/capabilities"
)

const flagAppend = 1 << 0 // fdflags

// fdRead reads into iovecs from the descriptor's offset on, and moves it.
func fdRead(ctx context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightRead)
	if e != success {
		return e
	}
	buffers, out, e := p.transfer(m, a[1], a[2], a[3])
	if e != success {
		return e
	}
	if d.stream == stdin && p.atInput != nil {
		return p.firstInput(ctx, a)
	}
	var n int
	if d.file == nil {
		n, e = p.readStream(ctx, d.stream, buffers)
	} else {
		n, e = p.read(ctx, d, buffers, d.offset)
		d.offset += int64(n)
	}
	return finish(out, n, e)
}

// fdPread reads into iovecs from a given offset on.
func fdPread(ctx context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightRead|rightSeek)
	if e != success {
		return e
	}
	if d.file == nil {
		return eSPIPE
	}
	buffers, out, e := p.transfer(m, a[1], a[2], a[4])
	if e != success {
		return e
	}
	if a[3] > math.MaxInt64 {
		return eINVAL
	}
	n, e := p.read(ctx, d, buffers, int64(a[3]))
	return finish(out, n, e)
}

// fdWrite writes iovecs at the descriptor's offset, or at the end of the file
// when it appends, and moves the offset behind them.
func fdWrite(ctx context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightWrite)
	if e != success {
		return e
	}
	buffers, out, e := p.transfer(m, a[1], a[2], a[3])
	if e != success {
		return e
	}
	var n int
	switch {
	case d.file == nil:
		n, e = p.writeStream(ctx, d.stream, buffers)
	case d.flags&flagAppend != 0:
		n, e = p.write(ctx, buffers, func(b []byte, _ int) (int, error) {
			n, end, err := d.file.Append(b)
			if n > 0 {
				d.offset = end
			}
			return n, err
		})
	default:
		n, e = p.write(ctx, buffers, func(b []byte, done int) (int, error) {
			return writeAt(d, b, d.offset, done)
		})
		d.offset += int64(n)
	}
	return finish(out, n, e)
}

// fdPwrite writes iovecs at a given offset, also to a file that appends
// (POSIX pwrite).
func fdPwrite(ctx context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightWrite|rightSeek)
	if e != success {
		return e
	}
	if d.file == nil {
		return eSPIPE
	}
	buffers, out, e := p.transfer(m, a[1], a[2], a[4])
	if e != success {
		return e
	}
	if a[3] > math.MaxInt64 {
		return eINVAL
	}
	n, e := p.write(ctx, buffers, func(b []byte, done int) (int, error) {
		return writeAt(d, b, int64(a[3]), done)
	})
	return finish(out, n, e)
}

// transfer returns views of the buffers and of the u32 for the count of bytes.
// Both are checked before a byte moves.
func (p *Process) transfer(m memory, list, n, count uint64) ([][]byte, []byte, errno) {
	buffers, e := m.vectors(p.buffers[:0], list, n)
	if e != success {
		return nil, nil, e
	}
	p.buffers = buffers
	out, ok := m.bytes(low(count), 4)
	if !ok {
		return nil, nil, eFAULT
	}
	return buffers, out, success
}

// finish writes the count of bytes. An error after some bytes moved is not
// told: the next call meets it again.
func finish(out []byte, n int, e errno) errno {
	if e != success && n == 0 {
		return e
	}
	le.PutUint32(out, uint32(n))
	return success
}

func (p *Process) read(ctx context.Context, d *descriptor, buffers [][]byte, off int64) (int, errno) {
	if len(buffers) == 0 {
		buffers = [][]byte{nil} // what an empty read is refused for does not depend on the count
	}
	var n int
	for _, b := range buffers {
		p.check(ctx)
		if off > math.MaxInt64-int64(n) {
			return n, eINVAL
		}
		k, err := d.file.ReadAt(b, off+int64(n))
		n += k
		if err != nil || k < len(b) {
			return n, p.result(err)
		}
	}
	return n, success
}

// write hands the buffers to put, with the count of bytes before each, until
// one is not taken whole.
func (p *Process) write(ctx context.Context, buffers [][]byte, put func(b []byte, done int) (int, error)) (int, errno) {
	var n int
	for _, b := range buffers {
		if len(b) == 0 {
			continue
		}
		p.check(ctx)
		k, err := put(b, n)
		n += k
		if err != nil || k < len(b) {
			return n, p.result(err)
		}
	}
	if n > 0 {
		return n, success
	}
	_, err := put(nil, 0)
	return 0, p.result(err)
}

func writeAt(d *descriptor, b []byte, off int64, done int) (int, error) {
	if off > math.MaxInt64-int64(done) {
		return 0, capabilities.EFBIG
	}
	return d.file.WriteAt(b, off+int64(done))
}

func (p *Process) writeStream(ctx context.Context, s stream, buffers [][]byte) (int, errno) {
	var w io.Writer
	switch s {
	case stdout:
		w = p.stdout
	case stderr:
		w = p.stderr
	case stdin, noStream:
		return 0, eBADF
	}
	return p.write(ctx, buffers, func(b []byte, _ int) (int, error) {
		if w == nil || len(b) == 0 {
			return len(b), nil
		}
		n, err := w.Write(b)
		if s == stderr {
			return len(b), nil
		}
		return n, err
	})
}
