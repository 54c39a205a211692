package volume

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// A change deletes the stages of dead processes that hold nothing of the
// volume, leaves the others and tells of them once.
func TestStagesOfOthers(t *testing.T) {
	h, dir := planted(t, map[string]string{
		"f": "old", ".sandboxd-new/n-1": "new", ".sandboxd-none/": "", ".sandboxd-done-x/o-1": "removed",
		".sandboxd-half/n-1": "new", ".sandboxd-half/o-2": "the only copy", ".sandboxd-other/1": "unknown",
		".sandboxd-file": "no folder",
	})
	for range 2 {
		g := overlay(t, h)
		must(t, g.write("f", "new", 0))
		must(t, g.commit(t, h))
	}
	var left []string
	for p := range image(t, dir) {
		if !strings.Contains(p, "/") {
			left = append(left, p)
		}
	}
	slices.Sort(left)
	if want := []string{".sandboxd-file", ".sandboxd-half", ".sandboxd-other", "f"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if got := h.Abandoned(); !slices.Equal(got, []string{".sandboxd-half", ".sandboxd-other"}) {
		t.Errorf("abandoned %q", got)
	}
	if got := h.Abandoned(); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
}

// Where the folder's lock cannot be had, a stage may be in use.
func TestStagesInUse(t *testing.T) {
	h, dir := planted(t, map[string]string{".sandboxd-new/n-1": "new"})
	l, err := h.lock(t.Context(), false)
	must(t, err)
	defer l.unlock()
	l.alone = false
	l.sweep()
	if got := image(t, dir); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}

// A stage shows what it is: a change that fails while it is prepared has only
// new contents there, and one that cannot be taken back has old files.
func TestStageNames(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old", "g": "old"})
	var stages []string
	h.disk.fault = func(op, name string) error {
		if op == "rename" && strings.HasPrefix(name, reservedPrefix) && strings.Contains(name, "/n-") {
			for p := range image(t, dir) {
				if strings.HasPrefix(p, reservedPrefix) && strings.Contains(p, "/") {
					_, part, _ := strings.Cut(p, "/")
					stages = append(stages, part[:2])
				}
			}
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.write("f", "new", -1))
	must(t, g.rm("g"))
	must(t, g.commit(t, h))
	slices.Sort(stages)
	if !slices.Equal(stages, []string{newPart, oldPart, oldPart}) {
		t.Errorf("parts %q", stages)
	}
}

// Only the owner of a stage knows whether it was committed.
func TestStagesOfOtherStores(t *testing.T) {
	for name, c := range map[string]struct {
		in        Intents
		left      bool
		abandoned bool
	}{
		"owner":              {&journal{name: "store"}, false, false},
		"another store":      {&journal{name: "other"}, true, false},
		"a store of no name": {&journal{}, true, false},
		"no store":           {nil, true, false},
	} {
		dir, j := unpublished(t, map[string]string{"f": "old"}, func(g *guest) error { return g.write("f", "new", -1) })
		j.pending = nil
		h := open(t, dir)
		if c.in != nil {
			var err error
			h, err = OpenJournaled(dir, c.in)
			must(t, err)
		}
		must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("n", "x", -1) })))
		if names := stages(t, dir); (len(names) == 1) != c.left {
			t.Errorf("%s: left %q", name, names)
		}
		if names := h.Abandoned(); (len(names) == 1) != c.abandoned {
			t.Errorf("%s: abandoned %q", name, names)
		}
		if c.in != nil {
			must(t, h.Close())
		}
	}
}

// A store of no name tells of the stages that it does not know.
func TestStageOfNoOne(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{".sandboxd-tx--" + strings.Repeat("A", 26) + "/n-1": "x"})
	h, err := OpenJournaled(dir, &journal{})
	must(t, err)
	defer h.Close()
	must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("n", "x", -1) })))
	if names := h.Abandoned(); len(names) != 1 || len(stages(t, dir)) != 1 {
		t.Errorf("abandoned %q of %q", names, stages(t, dir))
	}
}

// The stage is there from Stage to Close and no guest can tell: not by names, not
// by listings, not by the root's time.
func TestStageIsInvisible(t *testing.T) {
	for name, opened := range map[string]func(dir string) (*HostDir, error){
		"journaled": func(dir string) (*HostDir, error) { return OpenJournaled(dir, &journal{name: "store"}) },
		"plain":     OpenDir,
	} {
		dir := t.TempDir()
		plant(t, dir, map[string]string{"f": "old", "d/": ""})
		at := time.Unix(1e9, 0)
		must(t, os.Chtimes(dir, at, at))
		h, err := opened(dir)
		must(t, err)
		reader := change(t, h, func(g *guest) error { _, err := g.List(g.Root()); return err })
		c := change(t, h, func(g *guest) error { return g.write("f", "new", -1) })
		if len(stages(t, dir)) != 0 {
			t.Errorf("%s: a stage before Stage", name)
		}
		s, err := h.stage(t.Context(), c)
		must(t, err)
		names := stages(t, dir)
		if len(names) != 1 {
			t.Fatalf("%s: stages %q", name, names)
		}
		looks := func(when string) {
			t.Helper()
			g := overlay(t, h)
			list, err := g.List(g.Root())
			if err != nil || len(list) != 2 {
				t.Errorf("%s: %s: listed %v, %v", name, when, list, err)
			}
			for what, err := range map[string]error{
				"stat":        func() error { _, err := g.node(names[0], true); return err }(),
				"stat part":   func() error { _, err := g.node(names[0]+"/n-1", true); return err }(),
				"rename from": g.mv(names[0], "x"), "remove": g.rm(names[0]), "remove part": g.rm(names[0] + "/n-1"),
			} {
				if !errors.Is(err, capabilities.ENOENT) {
					t.Errorf("%s: %s: %s: %v", name, when, what, err)
				}
			}
			for what, err := range map[string]error{
				"create": g.write(names[0], "x", 0), "mkdir": g.mkdir(names[0]), "rename to": g.mv("d", names[0]),
			} {
				if !errors.Is(err, capabilities.EACCES) {
					t.Errorf("%s: %s: %s: %v", name, when, what, err)
				}
			}
			if info, _, err := h.Lstat("."); err != nil || !info.ModTime.Equal(at) {
				t.Errorf("%s: %s: time of the root %v, %v", name, when, info.ModTime, err)
			}
		}
		looks("staged")
		must(t, s.Lock(t.Context()))
		must(t, h.holdsAll(t, reader))
		must(t, s.Check(t.Context()))
		_ = s.Intent()
		must(t, s.Publish(t.Context()))
		looks("published")
		s.Close()
		looks("closed")
		if left := stages(t, dir); len(left) != 0 {
			t.Errorf("%s: left %q", name, left)
		}
		must(t, h.Close())
	}
}

func (h *HostDir) holdsAll(t *testing.T, c *Change) error {
	_, err := h.holds(t.Context(), c)
	return err
}
