package demo

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
)

func TestSnapshot(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("neither modes nor, for every user, links")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	take := func() snapshot {
		t.Helper()
		s, err := takeSnapshot(dir)
		must(err)
		return s
	}
	for _, name := range []string{"same", "bytes", "mode", "gone", "type"} {
		must(os.WriteFile(at(name), []byte(name), 0o600))
	}
	must(os.Symlink("same", at("link")))
	before := take()
	if d := before.diff(take()); len(d) != 0 {
		t.Errorf("nothing changed: %v", d)
	}
	must(os.WriteFile(at("bytes"), []byte("bytez"), 0o600))
	must(os.Chmod(at("mode"), 0o400))
	must(os.Remove(at("gone")))
	must(os.Remove(at("type")))
	must(os.Mkdir(at("type"), 0o700))
	must(os.Remove(at("link")))
	must(os.Symlink("bytes", at("link")))
	must(os.Mkdir(at("new"), 0o700))
	want := []string{"~bytes", "-gone", "~link", "~mode", "+new", "~type"}
	if d := before.diff(take()); !slices.Equal(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
}
