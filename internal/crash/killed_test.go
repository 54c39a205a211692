package crash

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var kills = flag.Int("kills", 60, "how many processes are killed, over all kinds of places")

// TestKilled kills processes at each step of their commits, and under load at
// random moments.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for name, at := range map[string]func(t *testing.T) place{
		"host folder":                      func(t *testing.T) place { return folder(t, t.TempDir(), "disk") },
		"managed volumes":                  func(t *testing.T) place { return place{Program: "steps", State: t.TempDir()} },
		"host folder on a file system off": func(t *testing.T) place { return folder(t, apart(t), "disk") },
	} {
		t.Run(name, func(t *testing.T) { killed(t, at(t), *kills/3) })
	}
}

// folder is a place with a host folder in dir.
func folder(t *testing.T, dir, volume string) place {
	t.Helper()
	dir = filepath.Join(dir, volume)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return place{Program: "steps", State: t.TempDir(), Folders: map[string]string{volume: dir}}
}

// apart returns a folder of another file system than that of the tests' folders.
func apart(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "crash")
	if err != nil {
		t.Skipf("no other file system: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// killed kills n processes: at steps that are spread over two calls, and in pairs
// under load.
func killed(t *testing.T, p place, n int) {
	l := newLedger(t, p, "a", "b", "c", "d")
	l.whole(t, 1, "a")
	total := l.whole(t, 2, "a")
	single := n * 2 / 3
	for i := range single {
		l.killedAt(t, "a", 1+(i*total+rand.IntN(total))/single)
	}
	for l.kills < n {
		l.killedUnderLoad(t, []string{"a", "b"}, []string{"c", "d"})
	}
	t.Logf("two calls with their deliveries take %d steps", total)
	l.finish(t, "a")
}
