package volume

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// journaled returns a volume with a journal, and its folder.
func journaled(t *testing.T, j Intents, tree map[string]string) (*HostDir, string) {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, tree)
	h, err := OpenJournaled(dir, j)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h, dir
}

// change returns what a call would leave.
func change(t *testing.T, h *HostDir, call func(*guest) error) *Change {
	t.Helper()
	g := overlay(t, h)
	must(t, call(g))
	c, err := g.Change()
	must(t, err)
	return c
}

// stages returns the names that guests cannot see, in a folder's root.
func stages(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range list {
		if reserved(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Whoever uses the folder next puts in place what was committed: who settles it,
// who locks it alone, who shares the lock, and who checks.
func TestSettledByWhoeverComes(t *testing.T) {
	for name, use := range map[string]func(h *HostDir, c *Change) error{
		"settle": func(h *HostDir, _ *Change) error { return h.Settle(t.Context()) },
		"write":  func(h *HostDir, c *Change) error { return h.Apply(t.Context(), c) },
		"read":   func(h *HostDir, c *Change) error { return h.Apply(t.Context(), &Change{Guards: c.Guards}) },
		"check":  func(h *HostDir, c *Change) error { return h.Check(t.Context(), c) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, j := unpublished(t, map[string]string{"f": "old", "g": "g"}, func(g *guest) error { return g.write("f", "new", -1) })
			h, err := OpenJournaled(dir, j)
			must(t, err)
			defer h.Close()
			must(t, use(h, change(t, h, func(g *guest) error { return g.write("g", "G", -1) })))
			if got := image(t, dir)["f"]; got != "-rw-r--r-- new" || j.left() != 0 {
				t.Errorf("%q, %d pending", got, j.left())
			}
		})
	}
}

// What a call read before an intent was put in place conflicts.
func TestSettledIsAConflict(t *testing.T) {
	dir, j := unpublished(t, map[string]string{"f": "old"}, func(g *guest) error { return g.write("f", "new", -1) })
	h, err := OpenJournaled(dir, j)
	must(t, err)
	defer h.Close()
	c := change(t, h, func(g *guest) error { _, err := g.cat("f"); return err })
	for _, err := range []error{h.Check(t.Context(), c), h.Apply(t.Context(), c)} {
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%v", err)
		}
	}
}

// Who settles waits for a process that is at work, and finds nothing to do then.
func TestSettleWaitsForOwner(t *testing.T) {
	j := &journal{name: "store"}
	h, dir := journaled(t, j, map[string]string{"f": "old"})
	s, err := h.stage(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) }))
	must(t, err)
	defer s.Close()
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	id := j.add(s.Intent())
	other, err := OpenJournaled(dir, j)
	must(t, err)
	defer other.Close()
	for name, o := range map[string]*HostDir{"same": h, "another": other} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := o.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	done := make(chan error)
	go func() { done <- other.Settle(context.Background()) }()
	must(t, s.Publish(t.Context()))
	s.Close()
	must(t, <-done)
	must(t, j.Done(t.Context(), id))
	if got := image(t, dir); len(got) != 1 || got["f"] != "-rw-r--r-- new" {
		t.Errorf("left %v", got)
	}
}

// Where nothing is pending nobody waits.
func TestSettleNothing(t *testing.T) {
	h, _ := journaled(t, &journal{}, nil)
	l, err := h.lock(t.Context(), false)
	must(t, err)
	defer l.unlock()
	must(t, h.Settle(t.Context()))
	plain, _ := planted(t, nil)
	must(t, plain.Settle(t.Context()))
}

// When the store does not answer, the folder is neither read nor changed.
func TestSettleWithoutStore(t *testing.T) {
	injected := errors.New("injected")
	for _, op := range []string{"pending", "done"} {
		dir, j := unpublished(t, map[string]string{"f": "old"}, func(g *guest) error { return g.write("f", "new", -1) })
		j.fault = func(is string) error {
			if is == op {
				return injected
			}
			return nil
		}
		h, err := OpenJournaled(dir, j)
		must(t, err)
		c := change(t, h, func(g *guest) error { return g.write("n", "x", -1) })
		for what, err := range map[string]error{"settle": h.Settle(t.Context()), "apply": h.Apply(t.Context(), c)} {
			if !errors.Is(err, injected) {
				t.Errorf("%s: %s: %v", op, what, err)
			}
		}
		j.fault = nil
		must(t, h.Apply(t.Context(), c))
		if got := image(t, dir); len(got) != 2 || got["f"] != "-rw-r--r-- new" {
			t.Errorf("%s: left %v", op, got)
		}
		must(t, h.Close())
	}
}

// An intent can be resumed by hand, again, and only where it belongs.
func TestResume(t *testing.T) {
	dir, j := unpublished(t, map[string]string{"f": "old", "g": "g"}, func(g *guest) error {
		return errorsOf(g.write("f", "new", -1), g.rm("g"))
	})
	data := j.pending[0].Data
	elsewhere, _ := planted(t, map[string]string{"f": "old", "g": "g"})
	if err := elsewhere.Resume(t.Context(), data); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("elsewhere: %v", err)
	}
	h := open(t, dir)
	must(t, h.Resume(t.Context(), data))
	must(t, h.Resume(t.Context(), data))
	must(t, overwriteAll(dir, "g", "later"))
	must(t, h.Resume(t.Context(), data))
	sameImage(t, image(t, dir), map[string]string{"f": "-rw-r--r-- new", "g": "-rw-r--r-- later"})

	// A folder that was moved is known by its stage.
	dir, j = unpublished(t, map[string]string{"f": "old"}, func(g *guest) error { return g.write("f", "new", -1) })
	must(t, os.Rename(dir, dir+"-moved"))
	h = open(t, dir+"-moved")
	must(t, h.Resume(t.Context(), j.pending[0].Data))
	sameImage(t, image(t, dir+"-moved"), map[string]string{"f": "-rw-r--r-- new"})
}

// Nothing changes without an intent, and one names the folder and what is done.
func TestIntent(t *testing.T) {
	h, dir := journaled(t, &journal{name: "store"}, map[string]string{"f": "old", "d/g": "g"})
	read, err := h.stage(t.Context(), change(t, h, func(g *guest) error { _, err := g.cat("f"); return err }))
	must(t, err)
	defer read.Close()
	if data := read.Intent(); data != nil {
		t.Errorf("intent of nothing: %s", data)
	}
	plain := open(t, t.TempDir())
	s, err := plain.stage(t.Context(), &Change{Guards: []Guard{{Path: "n"}}, Steps: []Step{{Action: ActPut, Path: "n"}}})
	must(t, err)
	if data := s.Intent(); data != nil {
		t.Errorf("intent without a journal: %s", data)
	}
	s.Close()
	s, err = h.stage(t.Context(), change(t, h, func(g *guest) error {
		return errorsOf(g.write("f", "new", -1), g.mv("d/g", "g"))
	}))
	must(t, err)
	defer s.Close()
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	in, err := parseIntent(s.Intent())
	must(t, err)
	var done []string
	for _, o := range in.Operations {
		done = append(done, string(o.Do)+" "+o.Path)
	}
	if want := "take d/g, place f, place g, times d, times ."; strings.Join(done, ", ") != want || in.Folder != h.folder.path {
		t.Errorf("%s in %s, want %s", strings.Join(done, ", "), in.Folder, want)
	}
	if names := stages(t, dir); len(names) != 1 || names[0] != in.Stage {
		t.Errorf("stages %q, want %s", names, in.Stage)
	}
}

// A stage stays while it is not known whether its change was committed; the next
// who locks the folder finds out.
func TestLeftStage(t *testing.T) {
	for name, committed := range map[string]bool{"committed after all": true, "not committed": false} {
		j := &journal{} // without a name
		h, dir := journaled(t, j, map[string]string{"f": "old"})
		s, err := h.stage(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) }))
		must(t, err)
		must(t, s.Lock(t.Context()))
		must(t, s.Check(t.Context()))
		data := s.Intent()
		s.Close()
		if len(stages(t, dir)) != 1 {
			t.Errorf("%s: stages %q", name, stages(t, dir))
		}
		want := "-rw-r--r-- old"
		if committed {
			j.add(data)
			want = "-rw-r--r-- new"
		}
		must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("n", "x", -1) })))
		if got := image(t, dir); len(got) != 2 || got["f"] != want || len(h.Abandoned()) > 0 {
			t.Errorf("%s: left %v", name, got)
		}
	}
}

// Who knows that nothing was committed leaves nothing.
func TestDrop(t *testing.T) {
	h, dir := journaled(t, &journal{}, map[string]string{"f": "old"})
	s, err := h.stage(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) }))
	must(t, err)
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	_ = s.Intent()
	s.Drop()
	s.Close()
	if got := image(t, dir); len(got) != 1 || got["f"] != "-rw-r--r-- old" {
		t.Errorf("left %v", got)
	}
}

// What was published after a commit is not taken back.
func TestUndoAfterCommit(t *testing.T) {
	j := &journal{name: "store"}
	h, dir := journaled(t, j, map[string]string{"f": "old"})
	s, err := h.stage(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) }))
	must(t, err)
	defer s.Close()
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	j.add(s.Intent())
	must(t, s.Publish(t.Context()))
	if err := s.Undo(); !errors.Is(err, ErrTorn) {
		t.Errorf("undo: %v", err)
	}
	s.Drop()
	s.Close()
	if got := image(t, dir); len(got) != 1 || got["f"] != "-rw-r--r-- new" {
		t.Errorf("left %v", got)
	}
}
