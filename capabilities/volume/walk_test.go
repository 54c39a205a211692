package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// outside returns a volume in a folder that has a secret beside it, and links
// that lead there in every way.
func outside(t *testing.T) (h *HostDir, secret string) {
	dir := t.TempDir()
	secret = filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o644))
	plant(t, dir, map[string]string{
		"v/d/f":          "inside",
		"v/absolute":     "->" + secret,
		"v/self":         "->" + filepath.Join(dir, "v", "d", "f"),
		"v/up":           "->../secret",
		"v/d/up":         "->../../secret",
		"v/around":       "->d/../../secret",
		"v/updir":        "->..",
		"v/root":         "->/",
		"v/chain":        "->chain2",
		"v/chain2":       "->d/chain3",
		"v/d/chain3":     "->../up",
		"v/d/in":         "->../d/f",
		"v/dot":          "->.",
		"v/loop":         "->loop2",
		"v/loop2":        "->loop",
		"v/itself":       "->itself/x",
		"v/dangling":     "->d/new",
		"v/to-root":      "->d/..",
		"v/dangling-out": "->../new",
	})
	return open(t, filepath.Join(dir, "v")), secret
}

func TestWalkEscapes(t *testing.T) {
	h, secret := outside(t)
	g := overlay(t, h)
	for _, path := range []string{
		"/", secret, "..", "../secret", "d/../../secret", "d/../..", "./..",
		"absolute", "self", "up", "d/up", "around", "updir/secret", "updir/v/d/f", "root/etc",
		"chain", "chain2", "d/chain3", "dot/up", "dot/dot/../..", "to-root/..", "dangling-out",
		"absolute/", "updir/",
	} {
		if _, err := g.Walk(g.Root(), path, true); !errors.Is(err, ErrEscape) {
			t.Errorf("walk %q: %v", path, err)
		}
		if err := g.write(path, "x", 0); !errors.Is(err, ErrEscape) {
			t.Errorf("write %q: %v", path, err)
		}
	}
	for _, dir := range []string{"updir/", "root/", "updir/../"} {
		if err := g.mkdir(dir + "x"); !errors.Is(err, ErrEscape) {
			t.Errorf("mkdir %q: %v", dir, err)
		}
		if err := g.mv("d", dir+"x"); !errors.Is(err, ErrEscape) {
			t.Errorf("rename to %q: %v", dir, err)
		}
	}
	must(t, g.commit(t, h))
	b, err := os.ReadFile(secret)
	if err != nil || string(b) != "secret" {
		t.Errorf("secret: %q, %v", b, err)
	}
	left, err := os.ReadDir(filepath.Dir(secret))
	if err != nil || len(left) != 2 {
		t.Errorf("outside: %v, %v", left, err)
	}
}

// A link that leaves the volume can be removed, moved and overwritten: that
// touches the link only.
func TestEscapingLinkItself(t *testing.T) {
	h, secret := outside(t)
	g := overlay(t, h)
	must(t, g.rm("absolute"))
	must(t, g.mv("up", "d/moved"))
	must(t, g.write("new", "mine", 0))
	must(t, g.mv("new", "around"))
	must(t, g.commit(t, h))
	dir := filepath.Join(filepath.Dir(secret), "v")
	if target, err := os.Readlink(filepath.Join(dir, "d/moved")); err != nil || target != "../secret" {
		t.Errorf("moved link: %q, %v", target, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "around")); err != nil || string(b) != "mine" {
		t.Errorf("file over link: %q, %v", b, err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("secret: %q, %v", b, err)
	}
}

// A directory that is replaced by a link behind the overlay's back does not
// lead out either.
func TestSwappedForLink(t *testing.T) {
	h, secret := outside(t)
	dir := filepath.Join(filepath.Dir(secret), "v")
	must(t, os.Mkdir(filepath.Join(filepath.Dir(secret), "other"), 0o755))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(secret), "other", "f"), []byte("other"), 0o644))
	g := overlay(t, h)
	must(t, g.write("d/f", "mine", 0))
	c, err := g.Change()
	must(t, err)
	must(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
	must(t, os.Symlink("../other", filepath.Join(dir, "d")))
	if err := h.Apply(t.Context(), c); !errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
	if _, err := h.Open("d/f"); !errors.Is(err, capabilities.EIO) {
		t.Errorf("read through the link: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(secret), "other", "f")); err != nil || string(b) != "other" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

func TestWalk(t *testing.T) {
	h, _ := outside(t)
	g := overlay(t, h)
	long := strings.Repeat("n", 255)
	for _, c := range []struct {
		path   string
		follow bool
		at     string // where it leads, "" for a missing last component
		err    error
	}{
		{path: ".", at: "."},
		{path: "d/..", at: "."},
		{path: "d//./f", at: "d/f"},
		{path: "d/", at: "d"},
		{path: "dot/d/in", follow: true, at: "d/f"},
		{path: "d/in", at: "d/in"},
		{path: "dot/", at: "."},
		{path: "dot/d/../d", at: "d"},
		{path: "to-root/d/f", at: "d/f"},
		{path: "new"},
		{path: "new/"},
		{path: "dangling", follow: true},
		{path: "dangling/", err: capabilities.ENOENT},
		{path: "new/x", err: capabilities.ENOENT},
		{path: "d/f/x", err: capabilities.ENOTDIR},
		{path: "d/f/", err: capabilities.ENOTDIR},
		{path: "d/f/..", err: capabilities.ENOTDIR},
		{path: "d/in/", err: capabilities.ENOTDIR},
		{path: "loop", at: "loop"},
		{path: "loop", follow: true, err: capabilities.ELOOP},
		{path: "loop/x", err: capabilities.ELOOP},
		{path: "itself", follow: true, err: capabilities.ELOOP},
		{path: "", err: capabilities.EINVAL},
		{path: "a\x00b", err: capabilities.EINVAL},
		{path: "d/\xff", err: capabilities.EILSEQ},
		{path: long},
		{path: long + "n", err: capabilities.ENAMETOOLONG},
		{path: strings.Repeat("./", 2048)},
		{path: strings.Repeat("./", 2048) + "d", err: capabilities.ENAMETOOLONG},
	} {
		p, err := g.Walk(g.Root(), c.path, c.follow)
		switch {
		case c.err != nil || err != nil:
			if !errors.Is(err, c.err) {
				t.Errorf("walk %.20q: %v, want %v", c.path, err, c.err)
			}
		case c.at == "" && p.Node != nil && !strings.HasPrefix(c.path, "./"):
			t.Errorf("walk %.20q: %q, want nothing", c.path, g.Path(p.Node))
		case c.at != "" && (p.Node == nil || g.Path(p.Node) != c.at):
			t.Errorf("walk %.20q: %+v, want %q", c.path, p, c.at)
		}
	}
	p, err := g.Walk(g.Root(), "dangling", true)
	if err != nil || g.Path(p.Parent) != "d" || p.Name != "new" {
		t.Errorf("dangling link: %+v, %v", p, err)
	}
}

func TestWalkLinkLimit(t *testing.T) {
	tree := map[string]string{"l0": "end"}
	for i := 1; i <= maxLinks+1; i++ {
		tree["l"+strconv.Itoa(i)] = "->l" + strconv.Itoa(i-1)
	}
	h, _ := planted(t, tree)
	g := overlay(t, h)
	if got := g.content(t, "l40"); got != "end" {
		t.Errorf("40 links: %q", got)
	}
	if _, err := g.node("l41", true); !errors.Is(err, capabilities.ELOOP) {
		t.Errorf("41 links: %v", err)
	}
}

func TestReservedNames(t *testing.T) {
	h, _ := planted(t, map[string]string{
		".sandboxd-x/f": "host", ".SandboxD-y": "host", "d/.sandboxd-x": "guest", ".sandboxd": "guest",
	})
	g := overlay(t, h)
	list, err := g.List(g.Root())
	must(t, err)
	if len(list) != 2 || list[0].Name != ".sandboxd" || list[1].Name != "d" {
		t.Errorf("list %+v", list)
	}
	for _, path := range []string{".sandboxd-x", ".SandboxD-y", "d/../.sandboxd-x", ".ſandboxd-x"} {
		if n, err := g.node(path, true); err == nil {
			t.Errorf("walk %q: %v", path, g.Path(n))
		}
		if err := g.write(path, "x", 0); !errors.Is(err, capabilities.EACCES) {
			t.Errorf("create %q: %v", path, err)
		}
		if err := g.mkdir(path); !errors.Is(err, capabilities.EACCES) {
			t.Errorf("mkdir %q: %v", path, err)
		}
		if err := g.mv("d", path); !errors.Is(err, capabilities.EACCES) {
			t.Errorf("rename to %q: %v", path, err)
		}
	}
	if _, err := g.node(".sandboxd-x/f", true); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("walk below: %v", err)
	}
	if got := g.content(t, "d/.sandboxd-x"); got != "guest" {
		t.Errorf("below the root: %q", got)
	}
	if err := h.Apply(t.Context(), &Change{Steps: []Step{{Action: ActRemove, Path: ".sandboxd-x/f"}}}); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("apply: %v", err)
	}
}
