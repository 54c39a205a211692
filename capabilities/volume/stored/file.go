package stored

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// file reads what a file of a snapshot holds. It holds one piece in memory.
type file struct {
	ctx   context.Context
	blobs store.Blobs
	size  int64

	mu      sync.Mutex
	content content
	at      int64 // the piece that is held; -1: none
	held    []byte
	closed  bool
}

// ReadAt is that of [io.ReaderAt].
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return 0, capabilities.EBADF
	case off < 0:
		return 0, capabilities.EINVAL
	case off >= f.size:
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), f.size-off)]
	done := 0
	for done < len(want) {
		n, err := f.readSome(want[done:], off+int64(done))
		if err != nil {
			return done, failed(err)
		}
		done += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// readSome reads bytes of one piece, at least one.
func (f *file) readSome(p []byte, off int64) (int, error) {
	if f.content.chunks == nil {
		return copy(p, f.content.inline[off:]), nil
	}
	i := off / chunkSize
	n := min(int64(len(p)), chunkEnd(i, f.size)-off)
	d := f.content.chunks[i]
	if d == hole {
		clear(p[:n])
		return int(n), nil
	}
	if f.at != i {
		b, err := f.blobs.Blob(f.ctx, d)
		if err != nil {
			return 0, err
		}
		if int64(len(b)) != chunkEnd(i, f.size)-i*chunkSize {
			return 0, fmt.Errorf("blob %s: %d bytes: %w", d, len(b), errForm)
		}
		f.at, f.held = i, b
	}
	return copy(p[:n], f.held[off-i*chunkSize:]), nil
}

// Chunks returns the size of the pieces that the store has of the file, and their
// digests, the zero one of zeros. A file that is kept whole has none.
func (f *file) Chunks() (size int, digests []store.Digest, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return chunkSize, slices.Clone(f.content.chunks), f.content.chunks != nil
}

// Close lets go of the piece.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return capabilities.EBADF
	}
	f.closed, f.held, f.content = true, nil, content{}
	return nil
}
