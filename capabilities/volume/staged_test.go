package volume

import (
	"context"
	"errors"
	"testing"
	"time"
)

// writing returns a change that writes a file, one that only reads it, and the
// folder.
func writing(t *testing.T) (h *HostDir, write, read *Change, dir string) {
	t.Helper()
	h, dir = planted(t, map[string]string{"f": "old"})
	settled()
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	write, err := g.Change()
	must(t, err)
	g = overlay(t, h)
	g.content(t, "f")
	read, err = g.Change()
	must(t, err)
	return h, write, read, dir
}

// Changes are prepared while somebody else holds the folder, also through
// another HostDir, and nobody takes their stages for ones that were left.
func TestStageWithoutLock(t *testing.T) {
	h, write, _, dir := writing(t)
	other := open(t, dir)
	l, err := other.lock(t.Context(), false)
	must(t, err)
	s, err := h.Stage(t.Context(), write)
	must(t, err)
	defer s.Close()
	l.sweep()
	l.unlock()
	if got := image(t, dir); len(got) != 3 {
		t.Errorf("no stage: %v", got)
	}
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	must(t, s.Publish(t.Context()))
	s.Close()
	if got := image(t, dir); len(got) != 1 || got["f"] != "-rw-r--r-- new" {
		t.Errorf("left: %v", got)
	}
}

// Guards are checked after staging: what was copied may be somebody's half.
func TestStageThenConflict(t *testing.T) {
	h, write, _, dir := writing(t)
	s, err := h.Stage(t.Context(), write)
	must(t, err)
	must(t, overwriteAll(dir, "f", "theirs"))
	must(t, s.Lock(t.Context()))
	if err := s.Publish(t.Context()); !errors.Is(err, ErrConflict) {
		t.Errorf("publish: %v", err)
	}
	s.Close()
	if got := image(t, dir); len(got) != 1 || got["f"] != "-rw-r--r-- theirs" {
		t.Errorf("left: %v", got)
	}
}

// Who only reads does not keep its like out, and keeps writers out.
func TestSharedLock(t *testing.T) {
	h, write, read, dir := writing(t)
	for name, other := range map[string]*HostDir{"same": h, "another": open(t, dir)} {
		s, err := h.Stage(t.Context(), read)
		must(t, err)
		must(t, s.Lock(t.Context()))
		must(t, s.Check(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		must(t, other.Check(ctx, read))
		must(t, other.Apply(ctx, read))
		if err := other.Apply(ctx, write); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: written while locked: %v", name, err)
		}
		cancel()
		s.Close()
	}
	must(t, h.Apply(t.Context(), write))
}

// What was published can be taken back, and then tried again.
func TestUndo(t *testing.T) {
	h, dir := planted(t, lively)
	settled()
	before := image(t, dir)
	g := overlay(t, h)
	livelyCall(t, g)
	c, err := g.Change()
	must(t, err)
	s, err := h.Stage(t.Context(), c)
	must(t, err)
	must(t, s.Lock(t.Context()))
	must(t, s.Publish(t.Context()))
	must(t, s.Undo())
	must(t, s.Undo())
	s.Close()
	sameImage(t, image(t, dir), before)
	must(t, h.Apply(t.Context(), c))
}
