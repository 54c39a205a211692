package volume

import (
	"context"
	"fmt"
)

// Checker is a [Store] that can say beforehand whether a change conflicts.
type Checker interface {
	// Check returns [ErrConflict] when a guard of the change no longer holds.
	// It changes nothing.
	Check(ctx context.Context, c *Change) error
}

// Check returns [ErrConflict] when a guard of the change no longer holds.
func (h *HostDir) Check(ctx context.Context, c *Change) error {
	if err := c.valid(); err != nil {
		return fmt.Errorf("volume change: %w", err)
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return h.holds(ctx, c)
}

// holds checks all guards and listings of a change.
func (h *HostDir) holds(ctx context.Context, c *Change) error {
	for _, g := range c.Guards {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.unchanged(g); err != nil {
			return err
		}
	}
	for _, l := range c.Listings {
		if err := h.disk.hit("readdir", l.Path); err != nil {
			return err
		}
		list, err := h.ReadDir(l.Path)
		switch {
		case isAbsent(err):
			return ErrConflict
		case err != nil:
			return err
		case ListingDigest(l.Path, list) != l.Digest:
			return ErrConflict
		}
	}
	return nil
}

// unchanged checks one guard.
func (h *HostDir) unchanged(g Guard) error {
	var st Stamp
	fi, err := h.disk.lstat(g.Path)
	switch {
	case err == nil:
		st = stampOf(fi)
	case !isAbsent(errnoOf(err)):
		return named(err)
	}
	if g.Stamp.Digest != "" && st.Exists && st.Kind == File {
		if st.Digest, err = h.digest(g.Path); err != nil {
			return err
		}
	}
	if !st.Same(g.Stamp) {
		return ErrConflict
	}
	return nil
}
