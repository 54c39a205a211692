package additive

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var gameNames = []string{"a", "b", "A", "d", "e"}

func gamePath(t *rapid.T) string {
	n := rapid.IntRange(1, 3).Draw(t, "depth")
	var parts []string
	for range n {
		parts = append(parts, rapid.SampledFrom(gameNames).Draw(t, "name"))
	}
	return strings.Join(parts, "/")
}

// plantGame makes a small tree of files, folders and links.
func plantGame(t *rapid.T, dir string) {
	for range rapid.IntRange(1, 8).Draw(t, "base") {
		p := filepath.Join(dir, filepath.FromSlash(gamePath(t)))
		// What does not fit into what is there already is left out.
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		switch rapid.SampledFrom([]string{"file", "file", "dir", "link"}).Draw(t, "what") {
		case "dir":
			_ = os.Mkdir(p, 0o755)
		case "link":
			_ = os.Symlink(rapid.SampledFrom(gameNames).Draw(t, "target"), p)
		default:
			mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o600, 0o755}).Draw(t, "mode")
			_ = os.WriteFile(p, []byte(rapid.SampledFrom([]string{"x\n", "y\n", "", "z"}).Draw(t, "content")), mode)
		}
	}
}

// playGame does something to a path. What is refused is not done.
func playGame(t *rapid.T, o *volume.Overlay) {
	p, err := o.Walk(o.Root(), gamePath(t), false)
	if err != nil {
		return
	}
	switch rapid.SampledFrom([]string{"move", "move", "remove", "mkdir", "write", "write"}).Draw(t, "do") {
	case "move":
		if q, err := o.Walk(o.Root(), gamePath(t), false); err == nil {
			_ = o.Rename(p, q)
		}
	case "remove":
		_ = o.Remove(p)
	case "mkdir":
		_ = o.Mkdir(p)
	case "write":
		n := p.Node
		if n == nil {
			if n, err = o.Create(p); err != nil {
				return
			}
		}
		if n.Kind() != volume.File || o.Open(n) != nil {
			return
		}
		defer o.Release(n)
		_ = o.Truncate(n, 0)
		_, _ = o.WriteAt(n, []byte(rapid.SampledFrom([]string{"x\n", "x\ny\n", "y\n", "z\n", ""}).Draw(t, "new")), 0)
	}
}

// TestGames: whatever is moved, removed and made anew, the judge lets pass what has
// all that was there, and nothing else.
func TestGames(t *testing.T) {
	top := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(top, "game")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		plantGame(t, dir)
		host, err := volume.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		o := volume.New(host, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 1000}})
		defer o.Close()
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			playGame(t, o)
		}
		change, err := o.Change()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Judge(t.Context(), []Tree{{Path: "/data", Base: host, Result: o.Result(), Steps: change.Steps}}, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if lost := gameLost(t, host, o.Result(), "."); (lost != "") != (r.Loss() != nil) {
			t.Fatalf("lost %q, judged %+v; steps %+v", lost, r.Loss(), change.Steps)
		}
	})
}

// gameLost returns the first path of which something is lost.
func gameLost(t *rapid.T, base, result volume.Base, dir string) string {
	list, err := base.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		p := strings.TrimPrefix(dir+"/"+e.Name, "./")
		was, _, err := base.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		is, _, err := result.Lstat(p)
		if err != nil || is.Kind != was.Kind || is.Mode != was.Mode {
			return p
		}
		switch was.Kind {
		case volume.Dir:
			if l := gameLost(t, base, result, p); l != "" {
				return l
			}
		case volume.Symlink:
			a, _ := base.Readlink(p)
			if b, err := result.Readlink(p); err != nil || a != b {
				return p
			}
		case volume.File:
			if !gameKept(gameText(t, base, p), gameText(t, result, p), was.Mode&0o111 != 0) {
				return p
			}
		case volume.Special:
		}
	}
	return ""
}

// gameKept reports whether all lines are still there; none is there twice.
func gameKept(was, is string, program bool) bool {
	if program {
		return strings.HasPrefix(is, was) && (was == "" || is == was || strings.HasSuffix(was, "\n") || is[len(was)] == '\n')
	}
	now := strings.Split(is, "\n")
	for line := range strings.Lines(was) {
		if !slices.Contains(now, strings.TrimSuffix(line, "\n")) {
			return false
		}
	}
	return true
}

func gameText(t *rapid.T, b volume.Base, p string) string {
	f, err := b.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return string(s)
}
