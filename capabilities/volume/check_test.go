package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(*guest) error
		// meanwhile is what somebody else does to the folder.
		meanwhile func(dir string) error
		conflict  bool
	}{
		{"same size, content read", func(g *guest) error { _, err := g.cat("f"); return err }, overwrite("f", "OLD"), true},
		{"same size, same time", func(g *guest) error { _, err := g.cat("f"); return err }, forge("f", "OLD"), true},
		{"looked at only", func(g *guest) error { _, err := g.node("f", true); return err }, overwrite("f", "OLD"), true},
		{"absence seen", func(g *guest) error { _, err := g.Walk(g.Root(), "new", true); return err }, overwrite("new", ""), true},
		{"absence below seen", func(g *guest) error { _, err := g.Walk(g.Root(), "d/new", true); return err }, overwrite("d/new", ""), true},
		{"listed, name added", func(g *guest) error { _, err := g.List(g.Root()); return err }, overwrite("new", ""), true},
		{"listed, name removed", func(g *guest) error { _, err := g.List(g.Root()); return err }, removed("f"), true},
		{"listed, kind changed", func(g *guest) error { _, err := g.List(g.Root()); return err }, func(dir string) error {
			return errors.Join(removed("f")(dir), os.Mkdir(filepath.Join(dir, "f"), 0o755))
		}, true},
		{"listed, content changed", func(g *guest) error { _, err := g.List(g.Root()); return err }, overwrite("f", "OLD"), false},
		{"made what appears", func(g *guest) error { return g.write("new", "mine", 0) }, overwrite("new", "theirs"), true},
		{"removed what changed", func(g *guest) error { return g.rm("f") }, overwrite("f", "OLD"), true},
		{"removed directory that got a file", func(g *guest) error { return g.rm("e") }, overwrite("e/x", ""), true},
		{"moved directory whose file changed", func(g *guest) error { return g.mv("d", "n") }, overwrite("d/f", "OLD"), true},
		{"moved directory that got a file", func(g *guest) error { return g.mv("d", "n") }, overwrite("d/new", ""), true},
		{"directory gone", func(g *guest) error { _, err := g.cat("d/f"); return err }, removed("d"), true},
		{"mode changed", func(g *guest) error { _, err := g.cat("f"); return err }, func(dir string) error {
			return os.Chmod(filepath.Join(dir, "f"), 0o600)
		}, true},
		{"something else in the directory", func(g *guest) error { return g.write("d/f", "mine", 0) }, overwrite("d/other", ""), false},
		{"something else", func(g *guest) error { return g.write("f", "mine", 0) }, overwrite("d/f", "OLD"), false},
		{"link changed", func(g *guest) error { _, err := g.cat("l"); return err }, func(dir string) error {
			return errors.Join(removed("l")(dir), os.Symlink("d/f", filepath.Join(dir, "l")))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, dir := planted(t, map[string]string{"f": "old", "d/f": "old", "e/": "", "l": "->f"})
			g := overlay(t, h)
			must(t, c.call(g))
			change, err := g.Change()
			must(t, err)
			must(t, h.Check(t.Context(), change))
			must(t, c.meanwhile(dir))
			theirs := image(t, dir)
			for what, err := range map[string]error{
				"check": h.Check(t.Context(), change), "apply": h.Apply(t.Context(), change),
			} {
				if errors.Is(err, ErrConflict) != c.conflict || (err != nil) != c.conflict {
					t.Errorf("%s: %v", what, err)
				}
			}
			if c.conflict {
				sameImage(t, image(t, dir), theirs)
			}
		})
	}
}

func overwrite(name, content string) func(string) error {
	return func(dir string) error {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(content)
		return errors.Join(err, f.Close())
	}
}

// forge changes a file in place and puts its modification time back.
func forge(name, content string) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(overwrite(name, content)(dir), os.Chtimes(path, time.Time{}, fi.ModTime()))
	}
}

func removed(name string) func(string) error {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}

// What changes while new contents are being prepared is seen before anything
// is put in place.
func TestConflictWhilePreparing(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	h.disk.fault = func(op, _ string) error {
		if op == "write" {
			return overwrite("f", "OLD")(dir)
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
	if got := image(t, dir); len(got) != 1 || !strings.HasSuffix(got["f"], " OLD") {
		t.Errorf("left: %v", got)
	}
}

// A file that somebody puts into a directory at the last moment is not removed
// with it.
func TestConflictWhileRemoving(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/": ""})
	h.disk.fault = func(op, name string) error {
		if op == "rename" && name == "d" {
			return overwriteAll(dir, "d/theirs", "x")
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.rm("d"))
	if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
	sameImage(t, image(t, dir), map[string]string{"d": "drwxr-xr-x ", "d/theirs": "-rw-r--r-- x"})
}

// Two changes that read and write the same file: the second one conflicts, and
// nothing is lost, also through two HostDirs on one folder.
func TestApplyConcurrently(t *testing.T) {
	h1, dir := planted(t, map[string]string{"count": ""})
	stores := []*HostDir{h1, open(t, dir)}
	const calls = 40
	done := make(chan error, calls)
	for i := range calls {
		go func() {
			h := stores[i%2]
			for {
				g := &guest{New(h, Options{Budget: ample()})}
				c, err := increment(g)
				if err == nil {
					err = h.Apply(context.Background(), c)
				}
				_ = g.Close()
				if !errors.Is(err, ErrConflict) {
					done <- err
					return
				}
			}
		}()
	}
	for range calls {
		must(t, <-done)
	}
	b, err := os.ReadFile(filepath.Join(dir, "count"))
	if err != nil || len(b) != calls {
		t.Errorf("%d calls counted, %v", len(b), err)
	}
}

// increment appends one byte to the file "count".
func increment(g *guest) (*Change, error) {
	n, err := g.node("count", true)
	if errors.Is(err, capabilities.ENOENT) {
		return nil, ErrConflict // seen in the middle of another change
	}
	if err != nil {
		return nil, err
	}
	info, err := g.Info(n)
	if err != nil {
		return nil, err
	}
	if err := g.write("count", "x", info.Size); err != nil {
		return nil, err
	}
	return g.Change()
}

func overwriteAll(dir, name, content string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
}

// The times of a file that was just changed cannot tell a further change on
// every system: its content is compared.
func TestEarlyFile(t *testing.T) {
	h, dir := planted(t, nil)
	var st Stamp
	for range 100 { // the machine may be slow
		must(t, overwriteAll(dir, "f", "old"))
		_, found, err := h.Lstat("f")
		must(t, err)
		if st = found; st.Digest != "" {
			break
		}
	}
	must(t, h.Check(t.Context(), &Change{Guards: []Guard{{Path: "f", Stamp: st}}}))
	other, err := h.digest("f")
	if err != nil || other != st.Digest {
		t.Errorf("digest %q, %v, want %q", other, err, st.Digest)
	}
	st.Digest = strings.Repeat("0", len(st.Digest))
	if err := h.Check(t.Context(), &Change{Guards: []Guard{{Path: "f", Stamp: st}}}); !errors.Is(err, ErrConflict) {
		t.Errorf("other content, same times: %v", err)
	}
	time.Sleep(2 * tick)
	if _, st, err := h.Lstat("f"); err != nil || st.Digest != "" {
		t.Errorf("later: %+v, %v", st, err)
	}
}

// A large file that was just changed is waited for instead of read.
func TestEarlyLargeFile(t *testing.T) {
	h, dir := planted(t, nil)
	must(t, overwriteAll(dir, "large", strings.Repeat("x", waitSize)))
	g := overlay(t, h)
	_, err := g.node("large", true)
	must(t, err)
	c, err := g.Change()
	must(t, err)
	if st := c.Guards[0].Stamp; st.Digest != "" || time.Since(st.Changed) < tick {
		t.Errorf("stamp %+v", st)
	}
	must(t, h.Check(t.Context(), c))
	must(t, forge("large", "y")(dir))
	if err := h.Check(t.Context(), c); !errors.Is(err, ErrConflict) {
		t.Errorf("check: %v", err)
	}
}

// A change waits for whoever holds the folder, for as long as its context
// lasts.
func TestLock(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	c, err := g.Change()
	must(t, err)
	for name, holder := range map[string]*HostDir{"same": h, "another": open(t, dir)} {
		l, err := holder.lock(t.Context(), false)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := h.Apply(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		l.unlock()
	}
	must(t, h.Apply(t.Context(), c))
	if err := lockError(t.Context()); !errors.Is(err, capabilities.EAGAIN) {
		t.Errorf("lock not had: %v", err)
	}
}
