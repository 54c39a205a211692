//go:build unix

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// linkedKey returns a volume with files that have a second name outside it, where
// nothing may change.
func linkedKey(t *testing.T) (h *HostDir, dir, out string) {
	t.Helper()
	dir, out = t.TempDir(), t.TempDir()
	plant(t, out, map[string]string{"key": "secret"})
	plant(t, dir, map[string]string{"other": "o", "d/": ""})
	chmod(t, out, "key", 0o600)
	must(t, os.Chtimes(filepath.Join(out, "key"), time.Time{}, time.Unix(1e9, 0)))
	if err := os.Link(filepath.Join(out, "key"), filepath.Join(dir, "key")); err != nil {
		t.Skip("this file system has no hard links")
	}
	return open(t, dir), dir, out
}

// Mode and times of a file are shared by all its names: the call's is another
// file then.
func TestLinkedOutside(t *testing.T) {
	at := time.Unix(1e9, 7)
	for name, c := range map[string]struct {
		call  func(*guest) error
		path  string
		mode  os.FileMode
		mtime time.Time
	}{
		"renamed over":        {func(g *guest) error { return g.mv("key", "other") }, "other", 0o644, time.Unix(1e9, 0)},
		"removed, moved":      {func(g *guest) error { return errors.Join(g.rm("other"), g.mv("key", "other")) }, "other", 0o644, time.Unix(1e9, 0)},
		"times":               {func(g *guest) error { return g.touch("key") }, "key", 0o600, at},
		"moved and times":     {func(g *guest) error { return errors.Join(g.mv("key", "d/k"), g.touch("d/k")) }, "d/k", 0o600, at},
		"moved":               {func(g *guest) error { return g.mv("key", "d/k") }, "d/k", 0o600, time.Unix(1e9, 0)},
		"directory and times": {func(g *guest) error { return errors.Join(g.mv("key", "d/k"), g.mv("d", "e"), g.touch("e/k")) }, "e/k", 0o600, at},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir, out := linkedKey(t)
			before := image(t, out)
			g := overlay(t, h)
			must(t, c.call(g))
			must(t, g.commit(t, h))
			sameImage(t, image(t, out), before)
			fi, err := os.Stat(filepath.Join(out, "key"))
			must(t, err)
			if !fi.ModTime().Equal(time.Unix(1e9, 0)) {
				t.Errorf("time outside: %v", fi.ModTime())
			}
			fi, err = os.Stat(filepath.Join(dir, c.path))
			must(t, err)
			b, err := os.ReadFile(filepath.Join(dir, c.path))
			if err != nil || string(b) != "secret" || fi.Mode() != c.mode || !fi.ModTime().Equal(c.mtime) {
				t.Errorf("inside: %q %v %v, %v", b, fi.Mode(), fi.ModTime(), err)
			}
		})
	}
}

// A second name that comes while the change is prepared is seen.
func TestLinkedLate(t *testing.T) {
	for name, call := range map[string]func(*guest) error{
		"times": func(g *guest) error { return g.touch("other") },
		"moved": func(g *guest) error { return errors.Join(g.mv("other", "d/k"), g.touch("d/k")) },
	} {
		t.Run(name, func(t *testing.T) {
			h, dir, out := linkedKey(t)
			g := overlay(t, h)
			must(t, call(g))
			c, err := g.Change()
			must(t, err)
			s, err := h.stage(t.Context(), c)
			must(t, err)
			defer s.Close()
			must(t, s.Lock(t.Context()))
			must(t, s.Check(t.Context()))
			must(t, os.Link(filepath.Join(dir, "other"), filepath.Join(out, "late")))
			if err := s.Publish(t.Context()); !errors.Is(err, ErrConflict) {
				t.Errorf("publish: %v", err)
			}
			fi, err := os.Stat(filepath.Join(out, "late"))
			must(t, err)
			if fi.ModTime().Equal(time.Unix(1e9, 7)) {
				t.Error("time changed")
			}
		})
	}
}
