//go:build unix

package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/enough"
)

// shown returns all that a guest can be shown of a tree.
func shown(t tester, b Base) []string {
	t.Helper()
	var list []string
	var walk func(path string)
	walk = func(path string) {
		info, st, err := b.Lstat(path)
		must(t, err)
		line := fmt.Sprintf("%s: %d %d %v %v %d %v", path, info.Kind, info.Size, info.Mode, info.ModTime.UnixNano(), info.Inode, st.Exists)
		switch info.Kind {
		case File:
			c, err := b.Open(path)
			must(t, err)
			data := make([]byte, info.Size+1)
			n, err := c.ReadAt(data, 0)
			if !errors.Is(err, io.EOF) {
				t.Fatal(path, err)
			}
			must(t, c.Close())
			line += fmt.Sprintf(" %x", data[:n])
		case Symlink:
			target, err := b.Readlink(path)
			must(t, err)
			line += " -> " + target
		case Special:
			_, err := b.Open(path)
			line += fmt.Sprint(" ", errors.Is(err, capabilities.EACCES))
		case Dir:
			entries, hidden, err := listBase(b, path)
			must(t, err)
			line += fmt.Sprint(" ", hidden, entries)
			list = append(list, line)
			for _, e := range entries {
				walk(join(path, e.Name))
			}
			return
		}
		list = append(list, line)
	}
	walk(".")
	return list
}

// sameShown compares what two trees show.
func sameShown(t *rapid.T, a, b []string, context func() string) {
	t.Helper()
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			t.Fatalf("missing: %s\n%s", b[i], context())
		case i >= len(b):
			t.Fatalf("more: %s\n%s", a[i], context())
		case a[i] != b[i]:
			t.Fatalf("got  %s\nwant %s\n%s", a[i], b[i], context())
		}
	}
}

// walker does random things in an overlay.
type walker struct {
	guest
	log []string
}

func (w *walker) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// actions are what a guest may do. Errors are part of it.
func (w *walker) actions() map[string]func(*rapid.T) {
	path := genPath(false)
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			p, data := path.Draw(t, "path"), genData.Draw(t, "data")
			off := rapid.SampledFrom([]int64{-1, 0, 3}).Draw(t, "off")
			w.note("write %s %d at %d: %v", p, len(data), off, w.write(p, data, off))
		},
		"rewrite as it is": func(t *rapid.T) {
			p := path.Draw(t, "path")
			if data, err := w.cat(p); err == nil {
				w.note("rewrite %s: %v", p, w.write(p, data, -1))
			}
		},
		"replace": func(t *rapid.T) {
			p, data := path.Draw(t, "path"), genData.Draw(t, "data")
			if is, err := w.cat(p); err == nil && rapid.Bool().Draw(t, "same") {
				data = is
			}
			w.note("replace %s: %v", p, errorsOf(w.write(p+"~", data, -1), w.mv(p+"~", p)))
		},
		"born and gone": func(t *rapid.T) {
			p := path.Draw(t, "path")
			w.note("tmp %s: %v", p, errorsOf(w.write(p+"~", "x", 0), w.rm(p+"~")))
		},
		"made again": func(t *rapid.T) {
			p := path.Draw(t, "path")
			w.note("made again %s: %v", p, errorsOf(w.rm(p), w.mkdir(p)))
		},
		"mkdir":  func(t *rapid.T) { p := path.Draw(t, "path"); w.note("mkdir %s: %v", p, w.mkdir(p)) },
		"remove": func(t *rapid.T) { p := path.Draw(t, "path"); w.note("rm %s: %v", p, w.rm(p)) },
		"rename": func(t *rapid.T) {
			from, to := path.Draw(t, "from"), path.Draw(t, "to")
			w.note("mv %s %s: %v", from, to, w.mv(from, to))
		},
		"there and back": func(t *rapid.T) {
			p := path.Draw(t, "path")
			w.note("back %s: %v", p, errorsOf(w.mv(p, "away"), w.mv("away", p)))
		},
		"times": func(t *rapid.T) {
			p := rapid.OneOf(rapid.Just("."), path).Draw(t, "path")
			at := time.Unix(rapid.Int64Range(0, 2e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
			n, err := w.node(p, true)
			if err == nil {
				err = w.SetTimes(n, at)
			}
			w.note("times %s: %v", p, err)
		},
		"look": func(t *rapid.T) {
			if n, err := w.node(path.Draw(t, "path"), true); err == nil && n.Kind() == Dir {
				_, _ = w.List(n)
			}
		},
	}
}

// ageTree gives everything a time of its own.
func ageTree(rt *rapid.T, t *testing.T, dir string) {
	var paths []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() != fs.ModeSymlink {
			paths = append(paths, path)
		}
		return err
	}))
	for _, p := range paths {
		at := time.Unix(rapid.Int64Range(1, 2e9).Draw(rt, "age"), rapid.Int64Range(0, 999_999_999).Draw(rt, "part"))
		must(t, os.Chtimes(p, time.Time{}, at))
	}
}

// TestShadow compares what a call would leave with what is there once it is
// committed: a guest that runs on the one, and then on the other, sees no
// difference.
func TestShadow(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	scratch := quickDir(t)
	changed := 0
	enough.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(scratch, "run")
		must(t, err)
		defer os.RemoveAll(dir)
		base := filepath.Join(dir, "base")
		growTree(rt, t, base)
		must(t, syscall.Mkfifo(filepath.Join(base, "pipe"), 0o640))
		ageTree(rt, t, base)
		step := rapid.SampledFrom([]time.Duration{1, 100, time.Second, 2 * time.Second}).Draw(rt, "step")
		now := time.Unix(1.8e9, 987654321)
		clock := func() time.Time { now = now.Add(1234567891); return now }
		j := &journal{}
		h, err := OpenJournaled(base, j)
		must(t, err)
		defer h.Close()
		h.times = step
		if rapid.Bool().Draw(rt, "far") {
			h.disk.apart = far
		}
		w := &walker{guest: guest{New(h, Options{Budget: ample(), Now: clock})}}
		defer w.Close()
		rt.Repeat(w.actions())
		shadow := w.Result()
		before := shown(rt, shadow)
		second := New(shadow, Options{})
		defer second.Close()
		why := func() string { return fmt.Sprintf("%q", w.log) }
		sameShown(rt, shown(rt, second.Result()), before, why)
		c, err := w.Change()
		must(rt, err)
		if len(w.changes("/v")) == 0 != c.Empty() {
			rt.Fatalf("effects %v of steps %+v\n%q", w.changes("/v"), c.Steps, w.log)
		}
		if !c.Empty() {
			changed++
		}
		if rapid.Bool().Draw(rt, "journaled") {
			must(rt, j.commit(t.Context(), h, c))
		} else {
			must(rt, h.Apply(t.Context(), c))
		}
		h2, err := OpenDir(base)
		must(t, err)
		defer h2.Close()
		fresh := New(h2, Options{})
		defer fresh.Close()
		why = func() string { return fmt.Sprintf("%q\n%+v", w.log, c.Steps) }
		sameShown(rt, before, shown(rt, fresh.Result()), why)
		sameShown(rt, before, shown(rt, h2), why)
	}, func() string {
		if changed < 10 {
			return fmt.Sprintf("%d changes", changed)
		}
		return ""
	})
}
