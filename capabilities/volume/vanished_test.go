package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestVanished: a file that somebody takes away after the call has seen it is a
// conflict, whoever looks for its content: the program, or the difference.
func TestVanished(t *testing.T) {
	for name, away := range map[string]func(path string) error{
		"removed":  os.Remove,
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
		"in a file": func(path string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o644))
		},
		"with folder": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "d", "f")
		must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
		must(t, os.WriteFile(path, []byte("old"), 0o644))
		reads, writes := overlay(t, open(t, dir)), overlay(t, open(t, dir))
		if _, err := reads.node("d/f", true); err != nil {
			t.Fatal(err)
		}
		n, err := writes.node("d/f", true)
		must(t, err)
		must(t, writes.Truncate(n, 0))
		must(t, writes.write("d/f", "new", 0))
		must(t, away(path))
		if _, err := reads.cat("d/f"); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: read: %v", name, err)
		}
		if _, err := writes.Change(); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: difference: %v", name, err)
		}
	}
}
