package stored

import (
	"errors"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// What one call has seen and another one has changed, and whether the first one
// can still be committed.
func TestConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		first, second play
		conflict      bool
	}{
		"read, changed": {
			func(g guest) error { _, err := g.read("d/f"); return err },
			func(g guest) error { return g.write("d/f", []byte("y"), 0) }, true,
		},
		"read, times set": {
			func(g guest) error { _, err := g.read("d/f"); return err },
			func(g guest) error { return g.touch("d/f", at()) }, true,
		},
		"read, removed": {
			func(g guest) error { _, err := g.read("d/f"); return err },
			func(g guest) error { return g.rm("d/f") }, true,
		},
		"read, neighbour changed": {
			func(g guest) error { _, err := g.read("d/f"); return err },
			func(g guest) error { return g.write("d/g", []byte("y"), 0) }, false,
		},
		"absence, made": {
			func(g guest) error { _, err := g.read("d/x"); return absent(err) },
			func(g guest) error { return g.write("d/x", nil, 0) }, true,
		},
		"absence, another made": {
			func(g guest) error { _, err := g.read("d/x"); return absent(err) },
			func(g guest) error { return g.write("d/y", nil, 0) }, false,
		},
		"listed, name gained": {
			func(g guest) error { return g.list("d") },
			func(g guest) error { return g.write("d/x", nil, 0) }, true,
		},
		"listed, name lost": {
			func(g guest) error { return g.list("d") },
			func(g guest) error { return g.rm("d/f") }, true,
		},
		"listed, content changed": {
			func(g guest) error { return g.list("d") },
			func(g guest) error { return g.write("d/f", []byte("longer than before"), 0) }, false,
		},
		"listed, name gained below": {
			func(g guest) error { return g.list("d") },
			func(g guest) error { return g.write("d/e/x", nil, 0) }, false,
		},
		"listed, kind changed": {
			func(g guest) error { return g.list("d") },
			func(g guest) error { return errors.Join(g.rm("d/f"), g.mkdir("d/f")) }, true,
		},
		"root listed, name gained": {
			func(g guest) error { return g.list(".") },
			func(g guest) error { return g.write("x", nil, 0) }, true,
		},
		"root listed, its time set": {
			func(g guest) error { return g.list(".") },
			func(g guest) error { return g.touch(".", at()) }, false,
		},
		"both make names in one directory": {
			func(g guest) error { return g.write("d/x", nil, 0) },
			func(g guest) error { return g.write("d/y", nil, 0) }, false,
		},
		"both make the same name": {
			func(g guest) error { return g.write("d/x", nil, 0) },
			func(g guest) error { return g.write("d/x", nil, 0) }, true,
		},
		"put into a directory that is removed": {
			func(g guest) error { return g.write("d/e/x", nil, 0) },
			func(g guest) error { return g.rm("d/e") }, true,
		},
		"removes a directory that is put into": {
			func(g guest) error { return g.rm("d/e") },
			func(g guest) error { return g.write("d/e/x", nil, 0) }, true,
		},
		"directory made anew": {
			func(g guest) error { _, err := g.node("d/e"); return err },
			func(g guest) error { return errors.Join(g.rm("d/e"), g.mv("d2", "d/e")) }, false, // it is the same path with the same mode
		},
		"moves a directory that is put into": {
			func(g guest) error { return g.mv("d", "moved") },
			func(g guest) error { return g.write("d/x", nil, 0) }, true,
		},
	} {
		s := planted(t, map[string]string{"d/f": "x", "d/g": "", "d/e/": "", "d2/": ""})
		base := now(t, s)
		first := over(t, base)
		if err := c.first(first); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		change := first.change(t)
		other := now(t, s)
		second := over(t, other)
		if err := c.second(second); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		must(t, apply(t.Context(), s, other, second.change(t)))
		if err := apply(t.Context(), s, now(t, s), change); errors.Is(err, volume.ErrConflict) != c.conflict || (err != nil) != c.conflict {
			t.Errorf("%s: on a later snapshot: %v", name, err)
		}
		if c.conflict {
			if err := apply(t.Context(), s, base, change); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s: at the commit: %v", name, err)
			}
		}
	}
}

func absent(err error) error {
	if errors.Is(err, capabilities.ENOENT) {
		return nil
	}
	return errors.Join(errors.New("not absent"), err)
}

// A directory that was removed and made by two commits is another one.
func TestDirectoryMadeAnew(t *testing.T) {
	s := planted(t, map[string]string{"d/": ""})
	base := now(t, s)
	g := over(t, base)
	must(t, g.write("d/f", nil, 0))
	for _, do := range []play{func(g guest) error { return g.rm("d") }, func(g guest) error { return g.mkdir("d") }} {
		tree := now(t, s)
		other := over(t, tree)
		must(t, do(other))
		must(t, apply(t.Context(), s, tree, other.change(t)))
	}
	if err := apply(t.Context(), s, base, g.change(t)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
}
