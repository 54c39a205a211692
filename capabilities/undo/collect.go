package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// collector keeps old contents, within bounds.
type collector struct {
	blobs  store.Blobs
	left   int64 // bytes that may still be kept
	inline int64 // of them inline
	stored int64 // bytes of the blobs that were named
	names  int64 // bytes left for names, and for lists of chunks
}

// lostError: a content is not kept. It stays in this package.
type lostError struct{ why Why }

func (e *lostError) Error() string { return string(e.why) }

// take charges for bytes of blobs, and reports whether there was room.
func (c *collector) take(n int64) bool {
	if n > c.left || c.blobs == nil {
		return false
	}
	c.left, c.stored = c.left-n, c.stored+n
	return true
}

// short reports whether a content of a size is held in the record, and charges
// for it.
func (c *collector) short(size int64) bool {
	if size > maxInline || size > c.inline || size > c.left {
		return false
	}
	c.inline, c.left = c.inline-size, c.left-size
	return true
}

// What a chunk takes in a record, in bytes: where it is kept or zeros, and the
// digest besides.
const (
	chunkText  = 4
	digestText = 2 * sha256.Size
)

// list charges for n chunks of a list, and reports whether there was room.
func (c *collector) list(n, each int64) bool {
	if n > c.names/each {
		return false
	}
	c.names -= n * each
	return true
}

// source is a file that was there, and the one that the call left of it.
type source struct {
	base   volume.Base
	path   string
	size   int64
	object string

	left     volume.Base // nil: the call left nothing of it
	leftPath string
	leftSize int64
	same     func(from, to int64) bool // ranges that are known to be the same
}

// chunked is a content that is in blobs already.
type chunked interface {
	Chunks() (size int, digests []store.Digest, ok bool)
}

// content keeps the content of a file, and returns it with its digest where that
// was computed. It returns a [*lostError].
func (c *collector) content(ctx context.Context, s source) (*Content, store.Digest, error) {
	if s.left != nil && s.size > 0 && s.size <= s.leftSize && s.same(0, s.size) {
		if !c.list(chunks(s.size, chunkSize), chunkText) {
			return nil, store.Digest{}, &lostError{WhyLarge}
		}
		return &Content{Chunk: chunkSize, Chunks: make([]Chunk, chunks(s.size, chunkSize))}, store.Digest{}, nil
	}
	f, err := s.base.Open(s.path)
	switch {
	case unreadable(err):
		return nil, store.Digest{}, &lostError{WhyUnreadable}
	case isAbsent(err):
		return nil, store.Digest{}, volume.ErrConflict
	case err != nil:
		return nil, store.Digest{}, err
	}
	defer f.Close()
	p := &pass{c: c, s: s, file: f, chunk: chunkSize, hash: sha256.New()}
	if k, ok := f.(chunked); ok {
		if size, digests, ok := k.Chunks(); ok && goodChunks(s.size, size, digests) {
			p.chunk, p.known = int64(size), digests
		}
	}
	if s.size == 0 || (p.known == nil && c.short(s.size)) {
		data := make([]byte, s.size)
		if err := readFull(f, data, 0); err != nil {
			return nil, store.Digest{}, err
		}
		return &Content{Inline: data}, sha256.Sum256(data), nil
	}
	whole := s.left == nil && p.known == nil && s.size > c.left
	if whole || !c.list(chunks(s.size, p.chunk), chunkText) {
		return nil, store.Digest{}, &lostError{WhyLarge} // nothing is put in blobs to no end
	}
	if s.left != nil {
		l, err := s.left.Open(s.leftPath)
		if err != nil && !unreadable(err) {
			return nil, store.Digest{}, err
		}
		if err == nil {
			defer l.Close()
			p.other = l
		}
	}
	return p.run(ctx)
}

// goodChunks reports whether chunks cover a content of a size.
func goodChunks(size int64, chunk int, digests []store.Digest) bool {
	return chunk > 0 && chunk <= store.MaxBlob && size > 0 && int64(len(digests)) == chunks(size, int64(chunk))
}

// pass goes through a file, chunk by chunk.
type pass struct {
	c     *collector
	s     source
	file  io.ReaderAt
	other io.ReaderAt // what the call left; nil: nothing that can be read
	chunk int64
	known []store.Digest
	hash  hash.Hash // of the whole, nil once a chunk was not read
	a, b  []byte
}

func (p *pass) run(ctx context.Context) (*Content, store.Digest, error) {
	p.a, p.b = make([]byte, p.chunk), make([]byte, p.chunk)
	out := &Content{Chunk: p.chunk, Chunks: make([]Chunk, 0, chunks(p.s.size, p.chunk))}
	for from := int64(0); from < p.s.size; from += p.chunk {
		if err := ctx.Err(); err != nil {
			return nil, store.Digest{}, err
		}
		k, err := p.one(ctx, len(out.Chunks), from, min(from+p.chunk, p.s.size))
		if err != nil {
			return nil, store.Digest{}, err
		}
		out.Chunks = append(out.Chunks, k)
	}
	if p.hash == nil {
		return out, store.Digest{}, nil
	}
	return out, store.Digest(p.hash.Sum(nil)), nil
}

// one keeps one chunk, unless the call left it in its place.
func (p *pass) one(ctx context.Context, i int, from, to int64) (Chunk, error) {
	there := p.s.left != nil && to <= p.s.leftSize
	if there && p.s.same(from, to) {
		p.hash = nil
		return Chunk{}, nil
	}
	was, is := p.a[:to-from], p.b[:to-from]
	known := p.known != nil && p.known[i] != store.Digest{} // a zero digest is that of a hole
	if !known {
		if err := readFull(p.file, was, from); err != nil {
			return Chunk{}, err
		}
		p.add(was)
	}
	if there && p.other != nil {
		if err := readFull(p.other, is, from); err != nil {
			return Chunk{}, err
		}
		switch {
		case !known && bytes.Equal(was, is):
			return Chunk{}, nil
		case known && p.known[i] == sha256.Sum256(is):
			p.add(is)
			return Chunk{}, nil
		}
	}
	switch {
	case !known && zeros(was):
		return Chunk{Zeros: true}, nil
	case !p.c.take(to-from) || !p.c.list(1, digestText):
		return Chunk{}, &lostError{WhyLarge}
	case known:
		p.hash = nil
		return Chunk{Blob: p.known[i]}, nil
	}
	d, err := p.c.blobs.PutBlob(ctx, was)
	return Chunk{Blob: d}, err
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (p *pass) add(b []byte) {
	if p.hash != nil {
		p.hash.Write(b)
	}
}

// digestOf returns the digest of a file of a tree.
func digestOf(ctx context.Context, b volume.Base, path string, size int64) (store.Digest, error) {
	f, err := b.Open(path)
	if err != nil {
		return store.Digest{}, err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, min(size, chunkSize))
	for off := int64(0); off < size; off += chunkSize {
		if err := ctx.Err(); err != nil {
			return store.Digest{}, err
		}
		part := buf[:min(size-off, chunkSize)]
		if err := readFull(f, part, off); err != nil {
			return store.Digest{}, err
		}
		h.Write(part)
	}
	return store.Digest(h.Sum(nil)), nil
}

// readFull fills p. A file that has become shorter has been changed by somebody
// else.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return volume.ErrConflict
	}
	return err
}
