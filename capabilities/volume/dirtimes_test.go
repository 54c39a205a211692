package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The time of a directory is what a program sees that works in a folder: its names
// set it, what is in its files does not, and a call that leaves nothing changes
// none.
func TestDirTimes(t *testing.T) {
	old, now := time.Unix(1e9, 11).UTC(), time.Unix(1.7e9, 22).UTC()
	chosen := time.Unix(1e9, 7).UTC()
	for name, c := range map[string]struct {
		call func(*guest) error
		want map[string]time.Time // others: old
	}{
		"file written":         {func(g *guest) error { return g.write("d/f", "new", -1) }, nil},
		"file written deep":    {func(g *guest) error { return g.write("d/e/g", "new", -1) }, nil},
		"file made":            {func(g *guest) error { return g.write("d/n", "new", -1) }, map[string]time.Time{"d": now}},
		"file made in root":    {func(g *guest) error { return g.write("n", "new", -1) }, map[string]time.Time{".": now}},
		"file removed":         {func(g *guest) error { return g.rm("d/f") }, map[string]time.Time{"d": now}},
		"file replaced":        {func(g *guest) error { return errorsOf(g.write("d/t", "x", 0), g.mv("d/t", "d/f")) }, map[string]time.Time{"d": now}},
		"file moved":           {func(g *guest) error { return g.mv("d/f", "d/e/f") }, map[string]time.Time{"d": now, "d/e": now}},
		"born and gone":        {func(g *guest) error { return errorsOf(g.write("d/t", "x", 0), g.rm("d/t")) }, nil},
		"written as it was":    {func(g *guest) error { return g.write("d/f", "old", -1) }, nil},
		"directory made":       {func(g *guest) error { return g.mkdir("d/n") }, map[string]time.Time{"d": now, "d/n": now}},
		"directory moved":      {func(g *guest) error { return g.mv("d/e", "m") }, map[string]time.Time{".": now, "d": now, "m": old}},
		"times set":            {func(g *guest) error { return g.touch("d") }, map[string]time.Time{"d": chosen}},
		"times set, then made": {func(g *guest) error { return errorsOf(g.touch("d"), g.write("d/n", "x", 0)) }, map[string]time.Time{"d": now}},
		"made, then times set": {func(g *guest) error { return errorsOf(g.write("d/n", "x", 0), g.touch("d", ".")) }, map[string]time.Time{"d": chosen, ".": chosen}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{name: "store"}
			h, dir := journaled(t, j, map[string]string{"d/f": "old", "d/e/g": "old"})
			for _, p := range []string{"d/e", "d", "."} {
				must(t, os.Chtimes(filepath.Join(dir, p), old, old))
			}
			g := &guest{New(h, Options{Budget: ample(), Now: func() time.Time { return now }})}
			defer g.Close()
			must(t, c.call(g))
			change, err := g.Change()
			must(t, err)
			must(t, j.commit(t.Context(), h, change))
			for _, path := range []string{".", "d", "d/e", "d/n", "m"} {
				fi, err := os.Stat(filepath.Join(dir, path))
				if errors.Is(err, os.ErrNotExist) || (err == nil && !fi.IsDir()) {
					continue
				}
				must(t, err)
				want, ok := c.want[path]
				if !ok {
					want = old
				}
				if !fi.ModTime().Equal(want) {
					t.Errorf("%s: %v, want %v", path, fi.ModTime(), want)
				}
			}
			for _, e := range g.changes("/v") {
				if e.Detail == DetailTimes && !strings.HasPrefix(name, "times") && name != "made, then times set" {
					t.Errorf("effect %v", e)
				}
			}
		})
	}
}

// A directory that somebody else has changed since does not get an earlier time.
func TestDirTimeOfOthers(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/f": "old"})
	now := time.Unix(1.7e9, 0)
	g := &guest{New(h, Options{Budget: ample(), Now: func() time.Time { return now }})}
	defer g.Close()
	must(t, g.write("d/n", "x", 0))
	c, err := g.Change()
	must(t, err)
	theirs := time.Now().Add(time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "d"), theirs, theirs))
	must(t, h.Apply(t.Context(), c))
	if info, _, err := h.Lstat("d"); err != nil || !info.ModTime.Equal(theirs) {
		t.Errorf("%v, %v", info.ModTime, err)
	}
}

// Times that follow are charged to no budget of files.
func TestDirTimesAreNoFiles(t *testing.T) {
	h, _ := planted(t, map[string]string{"d/f": "old", "d/e/g": "old"})
	g := limited(h, 1<<20, 2)
	defer g.Close()
	must(t, errorsOf(g.write("d/n", "x", 0), g.write("d/e/n", "x", 0)))
	c, err := g.Change()
	must(t, err)
	if n := len(slices.DeleteFunc(c.Steps, func(s Step) bool { return s.Was.IsZero() })); n != 2 {
		t.Errorf("%d times follow", n)
	}
}
