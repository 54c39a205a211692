package additive

import (
	"context"
	"errors"
	"hash/maphash"
	"io"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Same reports whether two contents of the file at a guest path are equal but
// for what may change there: the scalars at approved volatile pointers, while
// their type stays, and all of a file that the operator lists. It is the rule for
// what a repeated call changes. What is too complex to tell is not the same.
// Errors are those of the context and of reading.
func (r Rules) Same(ctx context.Context, path string, old, now volume.Content, oldSize, newSize int64) (bool, error) {
	if matches(r.VolatileFiles, path) {
		return true, nil
	}
	m := newMeter(ctx, oldSize+newSize)
	p := &pair{
		m:          m,
		old:        &source{r: old, size: oldSize, m: m, short: io.ErrUnexpectedEOF},
		new:        &source{r: now, size: newSize, m: m, short: io.ErrUnexpectedEOF},
		exceptions: exceptions(path, r.Volatile, nil),
	}
	same := p.equal()
	if errors.Is(m.err, errComplex) {
		return false, nil
	}
	return same && m.err == nil, m.err
}

func (p *pair) equal() bool {
	p.same = prefix(p.old, p.new)
	if p.same == p.old.size && p.same == p.new.size {
		return true
	}
	at := afterMark(p.old)
	if len(p.exceptions) == 0 || at != afterMark(p.new) {
		return false
	}
	seed := maphash.MakeSeed()
	was, is := newScan(p.old, seed).class(), newScan(p.new, seed).class()
	x := p.matcher(seed)
	switch {
	case p.m.err != nil:
		return false
	case was.json && is.json:
		return x.unchanged() && x.gap() && x.old.ended() && x.new.ended()
	case was.lines && is.lines:
		return x.unchangedRecords()
	}
	return false
}
