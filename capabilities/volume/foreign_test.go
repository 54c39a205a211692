package volume

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unpublished commits what a call does to a journal, and ends the process before
// anything of it is in the folder.
func unpublished(t *testing.T, tree map[string]string, call func(*guest) error) (dir string, j *journal) {
	t.Helper()
	dir, j = t.TempDir(), &journal{name: "store"}
	plant(t, dir, tree)
	h, err := OpenJournaled(dir, j)
	must(t, err)
	defer h.Close()
	settled()
	g := &guest{New(h, Options{Budget: ample()})}
	defer g.Close()
	must(t, call(g))
	c, err := g.Change()
	must(t, err)
	s, err := h.stage(t.Context(), c)
	must(t, err)
	defer s.Close()
	must(t, s.Lock(t.Context()))
	must(t, s.Check(t.Context()))
	j.add(s.Intent())
	return dir, j
}

// parted returns what of an image guests can see, and the contents of the rest.
func parted(image map[string]string) (map[string]string, []string) {
	var kept []string
	for _, p := range slices.Sorted(maps.Keys(image)) {
		if _, content, ok := strings.Cut(image[p], " "); hidden(p) && ok && content != "" {
			kept = append(kept, content)
		}
	}
	return visible(image), kept
}

// What somebody else writes between a commit and its publication gives way, and
// is kept.
func TestForeign(t *testing.T) {
	for name, c := range map[string]struct {
		call      func(*guest) error
		meanwhile func(dir string) error
		want      map[string]string // besides "other"
		kept      []string
	}{
		"nothing": {
			func(g *guest) error { return g.write("f", "new", -1) },
			func(string) error { return nil },
			map[string]string{"f": "new", "d/g": "g"},
			nil,
		},
		"replaced file changed": {
			func(g *guest) error { return g.write("f", "new", -1) },
			overwrite("f", "OLD"),
			map[string]string{"f": "new", "d/g": "g"},
			[]string{"OLD"},
		},
		"replaced file changed, time put back": {
			func(g *guest) error { return g.write("f", "new", -1) },
			forge("f", "OLD"),
			map[string]string{"f": "new", "d/g": "g"},
			[]string{"OLD"},
		},
		"replaced file is a directory": {
			func(g *guest) error { return g.write("f", "new", -1) },
			func(dir string) error { return errors.Join(removed("f")(dir), makeAll(dir, "f/x", "theirs")) },
			map[string]string{"f": "new", "d/g": "g"},
			[]string{"theirs"},
		},
		"removed file changed": {
			func(g *guest) error { return g.rm("f") },
			forge("f", "OLD"),
			map[string]string{"d/g": "g"},
			[]string{"OLD"},
		},
		"removed file gone": {
			func(g *guest) error { return g.rm("f") },
			removed("f"),
			map[string]string{"d/g": "g"},
			nil,
		},
		"removed directory got a file": {
			func(g *guest) error { return errors.Join(g.rm("d/g"), g.rm("d")) },
			overwrite("d/x", "theirs"),
			map[string]string{"f": "old"},
			[]string{"theirs"},
		},
		"new name taken": {
			func(g *guest) error { return g.write("n", "new", 0) },
			overwrite("n", "theirs"),
			map[string]string{"f": "old", "d/g": "g", "n": "new"},
			[]string{"theirs"},
		},
		"directory's name taken by a file": {
			func(g *guest) error { return errors.Join(g.mkdir("n"), g.write("n/f", "new", 0)) },
			overwrite("n", "theirs"),
			map[string]string{"f": "old", "d/g": "g", "n/f": "new"},
			[]string{"theirs"},
		},
		"directory's name taken by a directory": {
			func(g *guest) error { return errors.Join(g.mkdir("n"), g.write("n/f", "new", 0)) },
			func(dir string) error { return makeAll(dir, "n/x", "theirs") },
			map[string]string{"f": "old", "d/g": "g", "n/f": "new", "n/x": "theirs"},
			nil,
		},
		"moved directory's name taken by a directory": {
			func(g *guest) error { return g.mv("d", "n") },
			func(dir string) error { return makeAll(dir, "n/x", "theirs") },
			map[string]string{"f": "old", "n/g": "g", "n/x": "theirs"},
			nil,
		},
		"moved file changed": {
			func(g *guest) error { return g.mv("f", "n") },
			overwrite("f", "OLD"),
			map[string]string{"n": "OLD", "d/g": "g"},
			nil,
		},
		"moved file gone": {
			func(g *guest) error { return g.mv("f", "n") },
			removed("f"),
			map[string]string{"d/g": "g"},
			nil,
		},
		"moved file replaced": {
			func(g *guest) error { return g.mv("f", "n") },
			func(dir string) error {
				return errors.Join(overwriteAll(dir, "tmp", "theirs"), os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "f")))
			},
			map[string]string{"f": "theirs", "d/g": "g"},
			nil,
		},
		"directory gone": {
			func(g *guest) error { return errors.Join(g.write("d/g", "new", -1), g.write("d/n", "n", 0)) },
			removed("d"),
			map[string]string{"f": "old", "d/g": "new", "d/n": "n"},
			nil,
		},
		"directory is a link": {
			func(g *guest) error { return g.write("d/g", "new", -1) },
			func(dir string) error {
				return errors.Join(makeAll(dir, "e/g", "theirs"), removed("d")(dir), os.Symlink("e", filepath.Join(dir, "d")))
			},
			map[string]string{"f": "old", "d/g": "new", "e/g": "theirs"},
			[]string{"e"},
		},
		"removed behind a link": {
			func(g *guest) error { return g.rm("d/g") },
			func(dir string) error {
				return errors.Join(makeAll(dir, "e/g", "theirs"), removed("d")(dir), os.Symlink("e", filepath.Join(dir, "d")))
			},
			map[string]string{"f": "old", "d": "->e", "e/g": "theirs"},
			nil,
		},
		"times of a changed file": {
			func(g *guest) error { return g.touch("f") },
			overwrite("f", "OLD"),
			map[string]string{"f": "OLD", "d/g": "g"},
			nil,
		},
		"times of what is gone": {
			func(g *guest) error { return g.touch("f", "d") },
			func(dir string) error { return errors.Join(removed("f")(dir), removed("d")(dir)) },
			map[string]string{},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, j := unpublished(t, map[string]string{"f": "old", "d/g": "g", "other": "o"}, c.call)
			must(t, c.meanwhile(dir))
			h, err := OpenJournaled(dir, j)
			must(t, err)
			defer h.Close()
			must(t, h.Settle(t.Context()))
			must(t, h.Settle(t.Context()))
			c.want["other"] = "o"
			end := t.TempDir()
			plant(t, end, c.want)
			got, kept := parted(image(t, dir))
			sameImage(t, got, image(t, end))
			if !slices.Equal(kept, c.kept) {
				t.Errorf("kept %q, want %q", kept, c.kept)
			}
			if names := h.Abandoned(); (len(names) == 1) != (len(c.kept) > 0) || j.left() != 0 {
				t.Errorf("abandoned %q, %d pending", names, j.left())
			}
			// The next change leaves what is kept.
			g := overlay(t, h)
			must(t, g.write("later", "x", 0))
			change, err := g.Change()
			must(t, err)
			must(t, j.commit(t.Context(), h, change))
			if _, kept = parted(image(t, dir)); !slices.Equal(kept, c.kept) {
				t.Errorf("kept later %q, want %q", kept, c.kept)
			}
		})
	}
}

func makeAll(dir, name, content string) error {
	path := filepath.Join(dir, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
}

// TestForeignIsNeverLost writes something wherever it can, after a process was
// killed at each operation: it is still somewhere when the change is in place.
func TestForeignIsNeverLost(t *testing.T) {
	worlds := livelyWorlds(t)
	total, _ := worlds("all").commit(t, 1<<30)
	written := 0
	for k := 1; k <= total; k += every(7) {
		w := worlds(strconv.Itoa(k))
		_, _ = w.commit(t, k)
		if !w.committed() {
			must(t, os.RemoveAll(w.dir))
			continue
		}
		var foreign []string
		for _, p := range append(slices.Sorted(maps.Keys(lively)), slices.Sorted(maps.Keys(livelyAfter))...) {
			theirs := "theirs in " + p
			if !strings.HasSuffix(p, "/") && !strings.HasSuffix(p, "link") && !slices.Contains(foreign, theirs) && overwrite(p, theirs)(w.dir) == nil {
				foreign = append(foreign, theirs)
			}
		}
		written += len(foreign)
		h := w.open(t)
		must(t, h.Settle(t.Context()))
		var found []string
		for _, content := range image(t, w.dir) {
			found = append(found, content)
		}
		for _, f := range foreign {
			if !slices.ContainsFunc(found, func(content string) bool { return strings.Contains(content, f) }) {
				t.Errorf("killed at %d: lost %q", k, f)
			}
		}
		must(t, h.Close())
		must(t, os.RemoveAll(w.dir))
	}
	if written < 20 {
		t.Errorf("%d written: the test does not reach what it should", written)
	}
}

// The time of a file that somebody else has changed is theirs.
func TestForeignTime(t *testing.T) {
	dir, j := unpublished(t, map[string]string{"f": "old"}, func(g *guest) error { return g.touch("f") })
	at := time.Unix(123, 0)
	must(t, errors.Join(overwrite("f", "OLD")(dir), os.Chtimes(filepath.Join(dir, "f"), at, at)))
	h, err := OpenJournaled(dir, j)
	must(t, err)
	defer h.Close()
	must(t, h.Settle(t.Context()))
	if info, _, err := h.Lstat("f"); err != nil || !info.ModTime.Equal(at) {
		t.Errorf("%v, %v", info.ModTime, err)
	}
}

// What somebody else has taken away does not make a process, that takes over from
// one that took over, take away what that one has put there.
func TestForeignGoneAndCrash(t *testing.T) {
	for m := 1; ; m += every(3) {
		dir, j := unpublished(t, map[string]string{"f": "old", "other": "o"}, func(g *guest) error {
			return errorsOf(g.rm("f"), g.mkdir("f"), g.write("f/x", "new", 0))
		})
		must(t, removed("f")(dir))
		w := &world{dir: dir, journal: j}
		n, err := w.settle(t, m)
		h := w.open(t)
		must(t, h.Settle(t.Context()))
		sameImage(t, visible(image(t, dir)), map[string]string{
			"f": "drwxr-xr-x ", "f/x": "-rw-r--r-- new", "other": "-rw-r--r-- o",
		})
		if names := h.Abandoned(); len(names) > 0 {
			t.Errorf("killed at %d: abandoned %q", m, names)
		}
		must(t, h.Close())
		if n < m {
			must(t, err)
			return
		}
	}
}
