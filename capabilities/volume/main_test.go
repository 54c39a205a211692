package volume

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/capabilities"
)

func TestMain(m *testing.M) {
	// More than rapid's 100: rare sequences matter here. The command line can
	// say otherwise.
	if err := flag.Set("rapid.checks", "500"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// plant makes files: a name that ends in a slash is a directory, a content that
// begins with "->" is the target of a link. Parents are made.
func plant(t testing.TB, dir string, tree map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch target, link := strings.CutPrefix(tree[name], "->"); {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		case link:
			must(t, os.Symlink(target, path))
		default:
			must(t, os.WriteFile(path, []byte(tree[name]), 0o644))
		}
	}
}

// image returns what a folder holds: by path, the mode and then the content.
func image(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		var content string
		switch fi.Mode().Type() {
		case 0:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		case fs.ModeSymlink:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
			tree[filepath.ToSlash(rel)] = "link " + content
			return nil
		}
		tree[filepath.ToSlash(rel)] = fmt.Sprintf("%v %s", fi.Mode(), content)
		return nil
	}))
	return tree
}

func chmod(t testing.TB, dir, name string, mode fs.FileMode) {
	t.Helper()
	must(t, os.Chmod(filepath.Join(dir, name), mode))
}

func sameImage(t testing.TB, got, want map[string]string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[p]; !ok || g != want[p] {
			t.Errorf("%s: got %.60q (%v), want %.60q", p, g, ok, want[p])
		}
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: got %.60q, want nothing", p, got[p])
		}
	}
}

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *HostDir {
	t.Helper()
	h, err := OpenDir(dir)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

// planted returns a volume with files, and its folder.
func planted(t testing.TB, tree map[string]string) (*HostDir, string) {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, tree)
	return open(t, dir), dir
}

// quickDir returns an empty folder, in memory where there is such a place: for
// tests that commit often.
func quickDir(t testing.TB) string {
	t.Helper()
	where := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		where = "/dev/shm"
	}
	dir, err := os.MkdirTemp(where, "volume")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// every returns 1, or n for a short test: one of so many cases is tried.
func every(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

func ample() *Budget { return &Budget{Bytes: 64 << 20, Files: 10000} }

func overlay(t testing.TB, b Base) *guest {
	t.Helper()
	o := New(b, Options{Budget: ample()})
	t.Cleanup(func() { must(t, o.Close()) })
	return &guest{o}
}

// guest does what a program does, by path.
type guest struct{ *Overlay }

func (g guest) node(path string, follow bool) (*Node, error) {
	p, err := g.Walk(g.Root(), path, follow)
	if err != nil {
		return nil, err
	}
	if p.Node == nil {
		return nil, capabilities.ENOENT
	}
	return p.Node, nil
}

// write writes at an offset of a file, which it makes if it is missing; -1
// replaces the content.
func (g guest) write(path, data string, off int64) error {
	p, err := g.Walk(g.Root(), path, true)
	if err != nil {
		return err
	}
	n := p.Node
	if n == nil {
		if n, err = g.Create(p); err != nil {
			return err
		}
	}
	if err := g.Open(n); err != nil {
		return err
	}
	defer g.Release(n)
	if off < 0 {
		if err := g.Truncate(n, 0); err != nil {
			return err
		}
		off = 0
	}
	_, err = g.WriteAt(n, []byte(data), off)
	return err
}

func (g guest) rm(path string) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	return g.Remove(p)
}

func (g guest) mkdir(path string) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	return g.Mkdir(p)
}

func (g guest) mv(from, to string) error {
	p, err := g.Walk(g.Root(), from, false)
	if err != nil {
		return err
	}
	q, err := g.Walk(g.Root(), to, false)
	if err != nil {
		return err
	}
	return g.Rename(p, q)
}

// touch sets times.
func (g guest) touch(paths ...string) error {
	for _, path := range paths {
		n, err := g.node(path, true)
		if err == nil {
			err = g.SetTimes(n, time.Unix(1e9, 7))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g guest) cat(path string) (string, error) {
	n, err := g.node(path, true)
	if err != nil {
		return "", err
	}
	info, err := g.Info(n)
	if err != nil {
		return "", err
	}
	b := make([]byte, info.Size)
	got, err := g.ReadAt(n, b, 0)
	return string(b[:got]), err
}

// content returns what a guest reads in a file.
func (g guest) content(t testing.TB, path string) string {
	t.Helper()
	n, err := g.node(path, true)
	must(t, err)
	info, err := g.Info(n)
	must(t, err)
	b := make([]byte, info.Size)
	if len(b) > 0 {
		_, err = g.ReadAt(n, b, 0)
		must(t, err)
	}
	return string(b)
}

// commit applies what the guest did.
func (g guest) commit(t testing.TB, s Store) error {
	t.Helper()
	c, err := g.Change()
	must(t, err)
	return s.Apply(t.Context(), c)
}
