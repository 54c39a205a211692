package wasi

import (
	"context"
	"errors"
	"io"
)

const (
	maxInput      = 64 << 10 // bytes that are asked of an input that may block
	maxEmptyReads = 100      // in a row, before a reader counts as broken
)

// readStream fills the first buffer that is not empty, as far as input is
// there: waiting for more could be for ever.
func (p *Process) readStream(ctx context.Context, s stream, buffers [][]byte) (int, errno) {
	if s != stdin {
		return 0, eBADF
	}
	for _, b := range buffers {
		if len(b) == 0 {
			continue
		}
		n, err := p.readInput(ctx, b)
		if err == nil || errors.Is(err, io.EOF) {
			return n, success
		}
		return n, p.result(err)
	}
	return 0, success
}

// readInput reads at least one byte of standard input.
func (p *Process) readInput(ctx context.Context, b []byte) (int, error) {
	switch {
	case p.stdin == nil:
		return 0, io.EOF
	case !p.stdinBlocks:
		return readSome(p.stdin, b)
	}
	resume := p.Pause(ctx)
	select {
	case in := <-receive(p.stdin, min(len(b), maxInput)):
		resume()
		p.check(ctx)
		return copy(b, in.data), in.err
	case <-ctx.Done():
		p.check(ctx) // does not return
		return 0, ctx.Err()
	}
}

// received is what a read came to.
type received struct {
	data []byte
	err  error
}

// receive reads up to n bytes in a goroutine, which ends with the read. There
// is one at a time: a guest that does not wait for it is stopped, and reads no
// more. The buffer is its own, as it may outlive the guest's memory.
func receive(r io.Reader, n int) <-chan received {
	c := make(chan received, 1)
	go func() {
		b := make([]byte, n)
		k, err := readSome(r, b)
		c <- received{b[:k], err}
	}()
	return c
}

// readSome reads at least one byte, unless there is an error.
func readSome(r io.Reader, b []byte) (int, error) {
	for range maxEmptyReads {
		if n, err := r.Read(b); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}
