package volume

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

func TestRenameErrors(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "f", "d/x": "x", "d/sub/y": "y", "e/": "", "l": "->f"})
	for _, c := range []struct {
		from, to string
		err      error
	}{
		{"f", "f", nil},
		{"d", "d", nil},
		{"f", "d/x", nil},
		{"l", "f", nil},
		{"d", "e", nil},
		{"d", "d/sub/in", capabilities.EINVAL},
		{"d", "d/sub", capabilities.EINVAL},
		{"d/sub", "d", capabilities.ENOTEMPTY},
		{"d/x", "d", capabilities.ENOTEMPTY},
		{"e", "d", capabilities.ENOTEMPTY},
		{"f", "e", capabilities.EISDIR},
		{"e", "f", capabilities.ENOTDIR},
		{"e", "l", capabilities.ENOTDIR},
		{"f", "new/", capabilities.ENOTDIR},
		{"e", "new/", nil},
		{"none", "new", capabilities.ENOENT},
		{".", "new", capabilities.EBUSY},
		{"d/.", "new", capabilities.EBUSY},
		{"d/sub/..", "new", capabilities.EBUSY},
		{"e", "d/..", capabilities.EBUSY},
		{"f", strings.Repeat("n", 256), capabilities.ENAMETOOLONG},
	} {
		g := overlay(t, h)
		if err := g.mv(c.from, c.to); !errors.Is(err, c.err) {
			t.Errorf("rename %q %q: %v, want %v", c.from, c.to, err, c.err)
		}
	}
}

func TestRemoveErrors(t *testing.T) {
	h, _ := planted(t, map[string]string{"d/x": "x"})
	g := overlay(t, h)
	for path, want := range map[string]error{
		".": capabilities.EBUSY, "d/..": capabilities.EBUSY, "d/.": capabilities.EINVAL, "d": capabilities.ENOTEMPTY,
		"none": capabilities.ENOENT,
	} {
		if err := g.rm(path); !errors.Is(err, want) {
			t.Errorf("remove %q: %v, want %v", path, err, want)
		}
	}
}

// A place that was looked up before somebody else took it is not overwritten,
// and one whose node has gone is not removed twice.
func TestStalePlaces(t *testing.T) {
	g := overlay(t, nil)
	p, err := g.Walk(g.Root(), "f", true)
	must(t, err)
	must(t, g.write("f", "x", 0))
	if _, err := g.Create(p); !errors.Is(err, capabilities.EEXIST) {
		t.Errorf("create: %v", err)
	}
	p, err = g.Walk(g.Root(), "f", true)
	must(t, err)
	must(t, g.Remove(p))
	if err := g.Remove(p); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("remove: %v", err)
	}
	if err := g.Rename(p, Place{Parent: g.Root(), Name: "g"}); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("rename: %v", err)
	}
}

// A file that is open stays usable after it was removed, or replaced, and is
// gone from the tree all the same.
func TestOpenAfterRemoval(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "base content", "g": "other"})
	g := overlay(t, h)
	must(t, g.write("born", "born here", 0))
	used, _ := g.budget.Used()
	for path, want := range map[string]string{"f": "base content", "born": "born here", "g": "other"} {
		n, err := g.node(path, true)
		must(t, err)
		must(t, g.Open(n))
		must(t, g.rm(path))
		b := make([]byte, len(want))
		if _, err := g.ReadAt(n, b, 0); err != nil || string(b) != want {
			t.Errorf("read %s: %q, %v", path, b, err)
		}
		if _, err := g.WriteAt(n, []byte("XX"), 1); err != nil {
			t.Errorf("write %s: %v", path, err)
		}
		if _, err := g.ReadAt(n, b, 0); err != nil || string(b) != want[:1]+"XX"+want[3:] {
			t.Errorf("read %s again: %q, %v", path, b, err)
		}
		if info, err := g.Info(n); err != nil || info.Inode != inodeOf(path) || g.Path(n) != path {
			t.Errorf("info %s: %+v, %v", path, info, err)
		}
		g.Release(n)
	}
	if now, _ := g.budget.Used(); now >= used {
		t.Errorf("%d bytes held of removed files, %d before", now, used)
	}
	must(t, g.write("g", "new", 0))
	if got := g.content(t, "g"); got != "new" {
		t.Errorf("the path of a removed file: %q", got)
	}
}

func TestRemovedDirectory(t *testing.T) {
	h, _ := planted(t, map[string]string{"d/": ""})
	g := overlay(t, h)
	d, err := g.node("d", true)
	must(t, err)
	must(t, g.Open(d))
	must(t, g.rm("d"))
	if _, err := g.Walk(d, "x", true); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("walk: %v", err)
	}
	if _, err := g.Create(Place{Parent: d, Name: "x"}); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("create: %v", err)
	}
	if _, err := g.List(d); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("list: %v", err)
	}
	g.Release(d)
}

// Inode numbers follow from paths: List and Info agree, and a commit does not
// change them.
func TestInfo(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "old", "d/x": "x"})
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	g := &guest{New(h, Options{Budget: ample(), Now: func() time.Time { return now }})}
	defer g.Close()
	must(t, g.mv("d", "e"))
	must(t, g.write("f", "new", 0))
	inodes := func(g *guest) map[string]uint64 {
		m := map[string]uint64{}
		for _, dir := range []string{".", "e"} {
			n, err := g.node(dir, true)
			must(t, err)
			list, err := g.List(n)
			must(t, err)
			for _, e := range list {
				p, err := g.Walk(n, e.Name, false)
				must(t, err)
				info, err := g.Info(p.Node)
				must(t, err)
				if info.Inode != e.Inode || info.Kind != e.Kind {
					t.Errorf("%s: %+v, listed as %+v", e.Name, info, e)
				}
				m[g.Path(p.Node)] = info.Inode
			}
		}
		return m
	}
	n, err := g.node("f", true)
	must(t, err)
	if info, err := g.Info(n); err != nil || !info.ModTime.Equal(now) || info.Mode != 0o644 || info.Size != 3 {
		t.Errorf("info %+v, %v", info, err)
	}
	before := inodes(g)
	must(t, g.commit(t, h))
	after := inodes(overlay(t, h))
	for p, inode := range before {
		if after[p] != inode || inode == 0 {
			t.Errorf("%s: inode %d, %d after the commit", p, inode, after[p])
		}
	}
	g = overlay(t, h)
	n, err = g.node("f", true)
	must(t, err)
	if info, err := g.Info(n); err != nil || !info.ModTime.Equal(now) {
		t.Errorf("committed: %+v, %v", info, err)
	}
}

// What takes the place of a file or directory takes its mode, however it got
// there: no path of the base changes its mode.
func TestModesStay(t *testing.T) {
	for name, call := range map[string]func(*guest) error{
		"renamed over": func(g *guest) error { return errors.Join(g.write("t", "n", 0), g.mv("t", "secret")) },
		"removed, made again": func(g *guest) error {
			return errors.Join(g.rm("secret"), g.write("secret", "n", 0))
		},
		"removed, moved there": func(g *guest) error {
			return errors.Join(g.rm("secret"), g.mv("open", "secret"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := planted(t, map[string]string{"secret": "s", "open": "o"})
			chmod(t, dir, "secret", 0o600)
			g := overlay(t, h)
			must(t, call(g))
			n, err := g.node("secret", true)
			must(t, err)
			if info, err := g.Info(n); err != nil || info.Mode != 0o600 {
				t.Errorf("seen: %v, %v", info.Mode, err)
			}
			must(t, g.commit(t, h))
			if info, _, err := h.Lstat("secret"); err != nil || info.Mode != 0o600 {
				t.Errorf("committed: %v, %v", info.Mode, err)
			}
		})
	}
}

// Where a link was, the modes of what it led to say nothing.
func TestModeBehindLink(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/f": "x", "l": "->d"})
	chmod(t, dir, "d/f", 0o600)
	g := overlay(t, h)
	must(t, g.rm("l"))
	must(t, g.mkdir("l"))
	must(t, g.write("l/f", "new", 0))
	n, err := g.node("l/f", true)
	must(t, err)
	if info, err := g.Info(n); err != nil || info.Mode != 0o644 {
		t.Errorf("seen: %v, %v", info.Mode, err)
	}
	must(t, g.commit(t, h))
	if info, _, err := h.Lstat("l/f"); err != nil || info.Mode != 0o644 {
		t.Errorf("committed: %v, %v", info.Mode, err)
	}
}

func TestSetTimes(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "f", "l": "->f"})
	g := overlay(t, h)
	at := time.Unix(123, 456).UTC()
	for path, want := range map[string]error{"f": nil, ".": nil, "l": capabilities.ENOTSUP} {
		n, err := g.node(path, false)
		must(t, err)
		if err := g.SetTimes(n, at); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
		if info, err := g.Info(n); err != nil || (want == nil && !info.ModTime.Equal(at)) {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
	n, err := g.node("f", false)
	must(t, err)
	if err := g.SetTimes(n, time.Unix(1<<40, 0)); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("a far time: %v", err)
	}
	if e := lines(g.Effects("/v")); !slices.Equal(e, []string{"overwrite /v 0 times", "overwrite /v/f 0 times"}) {
		t.Errorf("effects %q", e)
	}
	must(t, g.commit(t, h))
	for _, path := range []string{"f", "."} {
		if info, _, err := h.Lstat(path); err != nil || !info.ModTime.Equal(at) {
			t.Errorf("%s committed: %+v, %v", path, info, err)
		}
	}
}
