//go:build unix

package volume

import (
	"os"
	"path/filepath"
	"testing"
)

// A link that leaves the volume takes the place of a tree that is removed.
func TestLinkOverRemovedTree(t *testing.T) {
	for i := range 20 {
		dir := t.TempDir()
		must(t, os.Symlink("../a", filepath.Join(dir, "a")))
		must(t, os.MkdirAll(filepath.Join(dir, "c/b/a/a"), 0o755))
		g := overlay(t, open(t, dir))
		for _, p := range []string{"c/b/a/a", "c/b/a", "c/b", "c"} {
			must(t, g.rm(p))
		}
		must(t, g.mv("a", "c"))
		c, err := g.Change()
		must(t, err)
		if err := open(t, dir).Apply(t.Context(), c); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}
