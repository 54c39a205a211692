//go:build unix

package undo

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// grown makes a folder that has what a forest has.
func grown(t tester, dir string, f forest) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	var dirs []string
	for _, path := range slices.Sorted(maps.Keys(f)) {
		it, at := f[path], filepath.Join(dir, path)
		switch it.kind {
		case volume.Dir:
			must(t, os.MkdirAll(at, 0o700))
			dirs = append(dirs, path)
		case volume.File:
			must(t, os.WriteFile(at, []byte(it.data), 0o600))
			must(t, os.Chmod(at, it.mode))
			must(t, os.Chtimes(at, it.time, it.time))
		case volume.Symlink:
			must(t, os.Symlink(it.data, at))
		case volume.Special:
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		at := filepath.Join(dir, dirs[i])
		must(t, os.Chmod(at, f[dirs[i]].mode))
		must(t, os.Chtimes(at, f[dirs[i]].time, f[dirs[i]].time))
	}
}

// In a folder of the host that calls are committed to, undo restores what was
// there, times of directories too, and its own undo what the call left.
func TestUndoFolder(t *testing.T) {
	scratch := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(scratch, "run")
		must(t, err)
		defer os.RemoveAll(dir)
		grown(t, dir, growing(t))
		h, err := volume.OpenDir(dir)
		must(t, err)
		defer h.Close()
		blobs := memstore.New()
		call := func(days int, do func(g guest)) *Record {
			g := over(h, days)
			defer g.Close()
			do(g)
			c, err := g.Change()
			must(t, err)
			rec := recorded(t, blobs, h, g)
			must(t, h.Apply(context.Background(), c))
			return rec
		}
		before := image(t, h)
		rec := call(1, func(g guest) { lives(t, g) })
		left := image(t, h)
		if !complete(t, rec) {
			return
		}
		back := call(2, func(g guest) { must(t, Restore(context.Background(), rec, only(g, blobs))) })
		sameImage(t, "undo", image(t, h), before)
		call(3, func(g guest) { must(t, Restore(context.Background(), back, only(g, blobs))) })
		sameImage(t, "redo", image(t, h), left)
	})
}
