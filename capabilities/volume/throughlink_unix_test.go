//go:build unix

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// TestThroughLinks: below a link that leads to itself, out or to no directory there is
// nothing. What is behind one that leads to a directory of the volume is no matter of
// the judge: whoever put something in its place has lost the link.
func TestThroughLinks(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "f"})
	for name, target := range map[string]string{"self": "self", "out": "../..", "absolute": "/", "gone": "nowhere", "file": "f"} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
		for _, p := range []string{name + "/a", name + "/a/b"} {
			if _, _, err := h.Lstat(p); !errors.Is(err, capabilities.ENOTDIR) && !errors.Is(err, capabilities.ENOENT) {
				t.Errorf("%s: %v", p, err)
			}
		}
		if info, _, err := h.Lstat(name); err != nil || info.Kind != Symlink {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
}
