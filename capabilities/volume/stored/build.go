package stored

import (
	"bytes"
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// maxPutting is how many pieces are on their way into the store at once: engines
// sync several with one sync. Each is held in memory.
const maxPutting = 4

// putter puts pieces into a store, a few at a time.
type putter struct {
	blobs store.Blobs
	ctx   context.Context
	group *errgroup.Group
	done  []func()
}

func newPutter(ctx context.Context, blobs store.Blobs) *putter {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxPutting)
	return &putter{blobs: blobs, ctx: ctx, group: group}
}

// put puts a piece, which is the putter's from now on. Its digest is there once
// wait has returned. Zeros are a hole.
func (p *putter) put(piece []byte, digest *store.Digest) {
	if zero(piece) {
		*digest = hole
		return
	}
	p.group.Go(func() (err error) {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		*digest, err = p.blobs.PutBlob(p.ctx, piece)
		return err
	})
}

// then has something done when all pieces are there.
func (p *putter) then(do func()) { p.done = append(p.done, do) }

// wait waits for all pieces.
func (p *putter) wait() error {
	if err := p.group.Wait(); err != nil {
		return err
	}
	for _, do := range p.done {
		do()
	}
	return nil
}

var zeros [chunkSize]byte

func zero(piece []byte) bool { return bytes.Equal(piece, zeros[:len(piece)]) }

// assemble returns what a step's file will hold, once the putter has waited. It
// reads no more of the base than the pieces that change.
func (r *redo) assemble(ctx context.Context, blobs *putter, s volume.Step) (*content, error) {
	a := assembly{step: s, was: r.was[s.Base].size}
	if s.Keep > 0 {
		base, err := r.tree.open(ctx, s.Base)
		if err != nil {
			return nil, err
		}
		defer base.Close()
		a.base = base
	}
	if s.Size <= maxInline {
		return a.inline()
	}
	return a.chunks(blobs)
}

// assembly is a file in the making.
type assembly struct {
	step volume.Step
	base *file // nil: nothing of a base is kept
	was  int64 // size of the base
}

func (a *assembly) inline() (*content, error) {
	b := make([]byte, a.step.Size)
	if err := a.fill(b, 0, all(a.step.Extents)); err != nil {
		return nil, err
	}
	return &content{inline: b}, nil
}

func all(extents []volume.Extent) []int {
	list := make([]int, len(extents))
	for i := range list {
		list[i] = i
	}
	return list
}

func (a *assembly) chunks(blobs *putter) (*content, error) {
	s := a.step
	changed := map[int64][]int{} // the extents of a piece, in their order
	for e, x := range s.Extents {
		if len(x.Data) == 0 {
			continue
		}
		for i := x.Offset / chunkSize; i <= (x.Offset+int64(len(x.Data))-1)/chunkSize; i++ {
			changed[i] = append(changed[i], e)
		}
	}
	c := &content{chunks: make([]store.Digest, chunksOf(s.Size))}
	for i := range int64(len(c.chunks)) {
		if blobs.ctx.Err() != nil {
			return nil, failed(context.Cause(blobs.ctx))
		}
		extents := changed[i]
		if len(extents) == 0 {
			if d, ok := a.kept(i); ok {
				c.chunks[i] = d
				continue
			}
		}
		piece := make([]byte, chunkEnd(i, s.Size)-i*chunkSize)
		if err := a.fill(piece, i*chunkSize, extents); err != nil {
			return nil, err
		}
		blobs.put(piece, &c.chunks[i])
	}
	return c, nil
}

// kept returns the digest of a piece that no extent changes, if it needs no new
// one.
func (a *assembly) kept(i int64) (store.Digest, bool) {
	at, end := i*chunkSize, chunkEnd(i, a.step.Size)
	switch {
	case at >= a.step.Keep:
		return hole, true
	case a.base.content.chunks == nil:
		return hole, false
	case a.base.content.chunks[i] == hole:
		return hole, true
	}
	return a.base.content.chunks[i], end <= a.step.Keep && end == chunkEnd(i, a.was)
}

// fill fills a part of the file: what is kept of the base, and the extents over
// it.
func (a *assembly) fill(b []byte, off int64, extents []int) error {
	if kept := min(a.step.Keep-off, int64(len(b))); kept > 0 {
		if err := readFull(a.base, b[:kept], off); err != nil {
			return err
		}
	}
	for _, e := range extents {
		x := a.step.Extents[e]
		if at := x.Offset - off; at >= 0 {
			copy(b[min(at, int64(len(b))):], x.Data)
		} else if -at < int64(len(x.Data)) {
			copy(b, x.Data[-at:])
		}
	}
	return nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return failed(errForm)
	}
	return err
}
