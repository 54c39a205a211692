package additive

import (
	"errors"
	"io"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// archive returns which history has the old content of a file, nil if none has.
func (j *judge) archive(list []History, object string, old io.ReaderAt, size int64) (*History, error) {
	for i, h := range list {
		if !within(h.Of, object) {
			continue
		}
		found, err := j.archived(h.Under, object, old, size)
		if err != nil || found {
			return &list[i], err
		}
	}
	return nil, nil
}

// archived reports whether the call adds a content under a path.
func (j *judge) archived(under, object string, old io.ReaderAt, size int64) (bool, error) {
	for i := range j.trees {
		t := &j.trees[i]
		for _, s := range t.Steps {
			at := guestPath(t.Path, s.Path)
			if s.Action != volume.ActPut || at == object || !within(under, at) {
				continue
			}
			found, err := j.holds(t, s.Path, old, size)
			if err != nil || found {
				return found, err
			}
		}
	}
	return false, nil
}

// holds reports whether what the call adds to a file has a content in it.
func (j *judge) holds(t *Tree, path string, old io.ReaderAt, size int64) (bool, error) {
	is, there, err := lstat(t.Result, path)
	if err != nil || !there || is.Kind != volume.File || is.Size < size {
		return false, err
	}
	was, there, err := lstat(t.Base, path)
	if err != nil || there && (was.Kind != volume.File || is.Size-was.Size < size) {
		return false, err
	}
	now, err := t.Result.Open(path)
	if err != nil {
		return false, err
	}
	defer now.Close()
	m := j.meter()
	hay := &source{r: now, size: is.Size, m: m, short: io.ErrUnexpectedEOF}
	needle := &source{r: old, size: size, m: m, short: volume.ErrConflict}
	var from int64
	if there {
		ok, err := begins(t.Base, path, hay, was.Size)
		if err != nil || !ok {
			return false, err
		}
		from = was.Size
	}
	found := contains(hay, from, needle)
	if m.err != nil && !errors.Is(m.err, errComplex) {
		return false, m.err
	}
	return found && m.err == nil, nil
}

// meter returns what all searches together may cost: to look for every file in
// every other one is quadratic.
func (j *judge) meter() *meter {
	if j.search == nil {
		var bytes int64
		for _, t := range j.trees {
			for _, s := range t.Steps {
				bytes += s.Size
			}
		}
		j.search = newMeter(j.ctx, bytes)
	}
	return j.search
}

// begins reports whether a content begins with the whole file that the base has.
func begins(b volume.Base, path string, now *source, size int64) (bool, error) {
	c, err := b.Open(path)
	if errors.Is(err, capabilities.EACCES) || errors.Is(err, capabilities.EPERM) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer c.Close()
	same := prefix(&source{r: c, size: size, m: now.m, short: volume.ErrConflict}, now)
	return same == size, nil
}

// contains reports whether a content has another one in it from a place on:
// beginning there or at a line, and ending at the end or with a line.
func contains(hay *source, from int64, needle *source) bool {
	h, n := newCursor(hay, from), newCursor(needle, 0)
	closed := false // the needle ends a line of its own
	var last [1]byte
	if needle.size > 0 {
		closed = needle.read(last[:], needle.size-1) && last[0] == '\n'
	}
	for at := from; hay.size-at >= needle.size && hay.m.err == nil; at = h.pos() {
		h.seek(at)
		n.seek(0)
		if matched(h, n) && (closed || h.lineEnd() >= 0) {
			return true
		}
		h.seek(at)
		if !h.nextLine() || h.ended() {
			return false
		}
	}
	return false
}

// matched reports whether all of n comes next in h.
func matched(h, n *cursor) bool {
	for !n.ended() {
		a, b := h.window(), n.window()
		k := min(len(a), len(b))
		if k == 0 || common(a[:k], b[:k]) < k {
			return false
		}
		h.i += k
		n.i += k
	}
	return true
}
