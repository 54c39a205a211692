package undo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

const (
	// maxInline is the largest content that is held in the record itself, in bytes.
	maxInline = 64 << 10
	// chunkSize is the size of blobs that are made, in bytes.
	chunkSize = 256 << 10
)

// Content is the content of a file or value that was there: inline, or in chunks
// of one size, the last of which may be shorter.
type Content struct {
	Inline []byte  `json:"inline,omitempty"`
	Chunk  int64   `json:"chunk,omitempty"` // bytes
	Chunks []Chunk `json:"chunks,omitempty"`
}

// Chunk says where a chunk's bytes are: in a blob, or nowhere because they are
// zeros, or (the zero value) in the file that the call left, in the same place: see
// State.From.
type Chunk struct {
	Blob  store.Digest
	Zeros bool
}

// Kept reports whether the file that the call left has the chunk's bytes.
func (c Chunk) Kept() bool { return c == Chunk{} }

// zerosText is how a chunk of zeros is written.
const zerosText = "0"

// MarshalText writes the digest in hex, "0" for zeros, nothing for a chunk that is
// kept.
func (c Chunk) MarshalText() ([]byte, error) {
	switch {
	case c.Zeros:
		return []byte(zerosText), nil
	case c.Kept():
		return []byte{}, nil
	}
	return c.Blob.MarshalText()
}

// UnmarshalText reads what MarshalText writes.
func (c *Chunk) UnmarshalText(b []byte) error {
	*c = Chunk{Zeros: string(b) == zerosText}
	if len(b) == 0 || c.Zeros {
		return nil
	}
	if err := c.Blob.UnmarshalText(b); err != nil {
		return err
	}
	if c.Kept() {
		return errors.New("chunk: digest of nothing")
	}
	return nil
}

func (c *Content) blobs() []store.Digest {
	var list []store.Digest
	for _, k := range c.Chunks {
		if !k.Kept() && !k.Zeros {
			list = append(list, k.Blob)
		}
	}
	return list
}

// chunkAt returns where chunk i of a content of some size begins and ends.
func (c *Content) chunkAt(i int, size int64) (from, to int64) {
	from = int64(i) * c.Chunk
	return from, min(from+c.Chunk, size)
}

// GoneError: a content is no longer kept, or is not what it should be. It matches
// [store.ErrGone].
type GoneError struct {
	Object string // guest path or key
	Digest store.Digest
}

// Error names the object.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%s: blob %s: %v", e.Object, e.Digest, store.ErrGone)
}

// Is reports whether target is [store.ErrGone].
func (e *GoneError) Is(target error) bool { return target == store.ErrGone }

// old reads contents that were there.
type old struct {
	blobs  store.Blobs
	object string
}

// blob returns the bytes of a chunk, which must be size long.
func (o old) blob(ctx context.Context, c Chunk, size int64) ([]byte, error) {
	if o.blobs == nil {
		return nil, &GoneError{o.object, c.Blob}
	}
	b, err := o.blobs.Blob(ctx, c.Blob)
	switch {
	case errors.Is(err, store.ErrGone):
		return nil, &GoneError{o.object, c.Blob}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", o.object, err)
	case int64(len(b)) != size:
		return nil, &GoneError{o.object, c.Blob}
	}
	return b, nil
}

// pieces calls do for each run of bytes of a state that is neither zeros nor kept
// in what the call left.
func (o old) pieces(ctx context.Context, s State, do func(off int64, data []byte) error) error {
	c := s.Content
	if c == nil || len(c.Inline) > 0 {
		if c == nil || len(c.Inline) == 0 {
			return nil
		}
		return do(0, c.Inline)
	}
	for i, k := range c.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if k.Kept() || k.Zeros {
			continue
		}
		from, to := c.chunkAt(i, s.Size)
		b, err := o.blob(ctx, k, to-from)
		if err != nil {
			return err
		}
		if err := do(from, b); err != nil {
			return err
		}
	}
	return nil
}

// all returns the whole of a content; left reads the file that the call left,
// for what is kept in it.
func (o old) all(ctx context.Context, s State, left io.ReaderAt) ([]byte, error) {
	data := make([]byte, s.Size)
	err := o.pieces(ctx, s, func(off int64, b []byte) error {
		copy(data[off:], b)
		return nil
	})
	if err != nil || s.Content == nil {
		return data, err
	}
	for i, k := range s.Content.Chunks {
		if !k.Kept() {
			continue
		}
		if left == nil {
			return nil, ErrChanged
		}
		from, to := s.Content.chunkAt(i, s.Size)
		if err := readFull(left, data[from:to], from); err != nil {
			return nil, err
		}
	}
	return data, nil
}
