package volume

import (
	"context"
	"fmt"
)

// Check returns [ErrConflict] when a guard of the change no longer holds, and
// EINVAL for a change that no overlay makes. It changes nothing.
func (h *HostDir) Check(ctx context.Context, c *Change) error {
	if err := c.valid(); err != nil {
		return fmt.Errorf("volume change: %w", err)
	}
	l, err := h.settled(ctx, true)
	if err != nil {
		return err
	}
	defer l.unlock()
	_, err = h.holds(ctx, c)
	return err
}

// holds checks all guards and listings of a change. It returns the stamps that the
// guarded paths have: those of files that were brought back are not the guards'.
func (h *HostDir) holds(ctx context.Context, c *Change) (map[string]Stamp, error) {
	found := make(map[string]Stamp, len(c.Guards))
	for _, g := range c.Guards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st, err := h.unchanged(g)
		if err != nil {
			return nil, err
		}
		found[g.Path] = st
	}
	return found, h.listed(c)
}

func (h *HostDir) listed(c *Change) error {
	for _, l := range c.Listings {
		if err := h.disk.hit("readdir", l.Path); err != nil {
			return err
		}
		list, hidden, err := h.List(l.Path)
		switch {
		case isAbsent(err):
			return ErrConflict
		case err != nil:
			return err
		case hidden != l.Hidden:
			return ErrConflict
		case ListingDigest(l.Path, list) != l.Digest:
			return ErrConflict
		}
	}
	return nil
}

// unchanged checks one guard, and returns the stamp that its path has.
func (h *HostDir) unchanged(g Guard) (Stamp, error) {
	st, err := h.stampNow(g.Path)
	if err != nil {
		return Stamp{}, err
	}
	if g.Stamp.Digest != "" && st.Exists && st.Kind == File {
		digest, err := h.digest(g.Path)
		if err != nil {
			return Stamp{}, h.unlessChanged(g.Path, st, err)
		}
		st.Digest = digest
	}
	now := st
	st = h.before(g, st)
	if !st.Same(g.Stamp) {
		return Stamp{}, ErrConflict
	}
	return now, nil
}

// stampNow returns the stamp of a path, without a digest.
func (h *HostDir) stampNow(path string) (Stamp, error) {
	fi, err := h.disk.lstat(path)
	switch {
	case err == nil:
		return stampOf(fi), nil
	case isAbsent(errnoOf(err)):
		return Stamp{}, nil
	}
	return Stamp{}, named(err)
}

// unlessChanged returns why a file could not be read or, if it is not the one
// that it was just now, a conflict.
func (h *HostDir) unlessChanged(path string, was Stamp, err error) error {
	if st, serr := h.stampNow(path); serr == nil && !st.Same(was) {
		return ErrConflict
	}
	return err
}
