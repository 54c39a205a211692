//go:build unix

package volume

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
)

// twin does the same thing in an overlay and, for real, in a folder that began
// as a copy of the overlay's base.
type twin struct {
	guest
	dir   string // the copy
	modes map[string]fs.FileMode
}

// TestOverlayLikeHost compares an overlay with a folder, operation by
// operation, and the base after a commit with that folder.
func TestOverlayLikeHost(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	scratch := quickDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(scratch, "run")
		must(t, err)
		defer os.RemoveAll(dir)
		base, twinDir := filepath.Join(dir, "base"), filepath.Join(dir, "twin")
		must(t, os.Mkdir(twinDir, 0o755))
		growTree(rt, t, base)
		must(t, os.CopyFS(twinDir, os.DirFS(base)))
		h, err := OpenDir(base)
		must(t, err)
		defer h.Close()
		before := image(t, base)
		w := &twin{guest: guest{New(h, Options{Budget: ample()})}, dir: twinDir, modes: modesOf(t, base)}
		copyModes(t, twinDir, w.modes)
		defer w.Close()
		rt.Repeat(map[string]func(*rapid.T){
			"write":    w.opWrite,
			"truncate": w.opTruncate,
			"read":     w.opRead,
			"stat":     w.opStat,
			"list":     w.opList,
			"mkdir":    w.opMkdir,
			"remove":   w.opRemove,
			"rename":   w.opRename,
		})
		if !equal(image(t, base), before) {
			rt.Fatalf("the base changed before the commit")
		}
		w.finish(rt, t, h, base, before)
	})
}

// finish commits by way of JSON, and compares trees and effects.
func (w *twin) finish(rt *rapid.T, t *testing.T, h *HostDir, base string, before map[string]string) {
	c, err := w.Change()
	must(rt, err)
	b, err := json.Marshal(c)
	must(rt, err)
	var decoded Change
	must(rt, json.Unmarshal(b, &decoded))
	must(rt, h.Apply(t.Context(), &decoded))
	w.settleModes(t)
	got, want := image(t, base), image(t, w.dir)
	if !equal(got, want) {
		sameImage(t, got, want)
		rt.Fatalf("trees differ after %s", b)
	}
	effects := w.changes("/v")
	if got, want := verbs(effects), expectedVerbs(before, want); !slices.Equal(got, want) {
		rt.Fatalf("effects %q, want %q", got, want)
	}
	if len(effects) == 0 && !c.Empty() {
		rt.Fatalf("no effects but steps: %s", b)
	}
}

// verbs returns the effects as sorted lines.
func verbs(list []capabilities.Effect) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Object+" "+e.Verb.String())
	}
	slices.Sort(out)
	return out
}

// expectedVerbs returns what must be said of the difference of two images.
func expectedVerbs(before, after map[string]string) []string {
	kind := func(s string) string {
		k, _, _ := strings.Cut(s, " ")
		return k[:1]
	}
	content := func(s string) string { _, c, _ := strings.Cut(s, " "); return c }
	var out []string
	for p, old := range before {
		now, ok := after[p]
		switch {
		case ok && now == old:
		case !ok:
			out = append(out, "/v/"+p+" delete")
		case kind(now) != kind(old):
			out = append(out, "/v/"+p+" delete", "/v/"+p+" create")
		case kind(now) == "-" && strings.HasPrefix(content(now), content(old)):
			out = append(out, "/v/"+p+" append")
		default:
			out = append(out, "/v/"+p+" overwrite")
		}
	}
	for p := range after {
		if _, ok := before[p]; !ok {
			out = append(out, "/v/"+p+" create")
		}
	}
	slices.Sort(out)
	return out
}

func modesOf(t *testing.T, dir string) map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := d.Info()
		must(t, err)
		modes[strings.TrimPrefix(path, dir+"/")] = fi.Mode()
		return nil
	}))
	return modes
}

func copyModes(t *testing.T, dir string, modes map[string]fs.FileMode) {
	for p, m := range modes {
		if m.Type() == 0 || m.IsDir() {
			must(t, os.Chmod(filepath.Join(dir, p), m.Perm()))
		}
	}
	must(t, os.Chmod(dir, 0o755))
}

// mode returns the mode that a path is due: that of the base, if the kind is
// the same.
func (w *twin) mode(path string, is fs.FileMode) fs.FileMode {
	if old, ok := w.modes[path]; ok && old.Type() == is.Type() {
		return old.Perm()
	}
	return is.Perm()
}

func (w *twin) settleModes(t *testing.T) {
	for p, m := range modesOf(t, w.dir) {
		if m.Type() != fs.ModeSymlink {
			must(t, os.Chmod(filepath.Join(w.dir, p), w.mode(p, m)))
		}
	}
}

var (
	names    = []string{"a", "b", "c"}
	genName  = rapid.SampledFrom(names)
	genData  = rapid.SampledFrom([]string{"", "x", "hello", "line\n", strings.Repeat("0123456789", 7000)})
	genSize  = rapid.SampledFrom([]int64{0, 1, 3, 100, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize})
	genModes = rapid.SampledFrom([]fs.FileMode{0o600, 0o644, 0o755, 0o700})
)

// genPath makes paths that mostly lead somewhere.
func genPath(dots bool) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		for range rapid.IntRange(1, 4).Draw(t, "depth") {
			if dots && rapid.IntRange(0, 9).Draw(t, "dots") == 0 {
				parts = append(parts, rapid.SampledFrom([]string{".", ".."}).Draw(t, "dot"))
			}
			parts = append(parts, genName.Draw(t, "name"))
		}
		p := strings.Join(parts, "/")
		if dots && rapid.IntRange(0, 9).Draw(t, "slash") == 0 {
			p += "/"
		}
		return p
	})
}

// growTree makes a random base, with links that stay inside, dangle or loop.
func growTree(rt *rapid.T, t *testing.T, dir string) {
	must(t, os.Mkdir(dir, 0o755))
	for range rapid.IntRange(0, 12).Draw(rt, "files") {
		p := filepath.Join(dir, genPath(false).Draw(rt, "path"))
		if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			continue // a file is in the way
		}
		switch rapid.IntRange(0, 4).Draw(rt, "kind") {
		case 0:
			_ = os.Mkdir(p, genModes.Draw(rt, "mode")|0o700)
		case 1:
			if rel, err := filepath.Rel(filepath.Dir(p), filepath.Join(dir, genPath(false).Draw(rt, "target"))); err == nil {
				_ = os.Symlink(rel, p)
			}
		default:
			if _, err := os.Lstat(p); err != nil {
				must(t, os.WriteFile(p, []byte(genData.Draw(rt, "data")), genModes.Draw(rt, "mode")))
			}
		}
	}
}

// same compares the errors of both sides. It reports whether both succeeded.
func (w *twin) same(t *rapid.T, op, path string, got, want error) bool {
	t.Helper()
	if want = errnoOf(want); !errors.Is(got, want) {
		t.Fatalf("%s %q: %v, want %v", op, path, got, want)
	}
	return want == nil
}

// leaves reports whether the overlay refuses the path as one that leaves the
// volume; for real, it must not be tried.
func (w *twin) leaves(path string, follow bool) bool {
	_, err := w.Walk(w.Root(), path, follow)
	return errors.Is(err, ErrEscape)
}

func (w *twin) real(path string) string { return w.dir + "/" + path }

func (w *twin) opWrite(t *rapid.T) {
	path, data := genPath(true).Draw(t, "path"), genData.Draw(t, "data")
	off := genSize.Draw(t, "off")
	if w.leaves(path, true) || strings.HasSuffix(path, "/") {
		t.Skip()
	}
	got := w.write(path, data, off)
	f, err := os.OpenFile(w.real(path), os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteAt([]byte(data), off)
		must(t, f.Close())
	}
	w.same(t, "write", path, got, err)
}

func (w *twin) opTruncate(t *rapid.T) {
	path, size := genPath(true).Draw(t, "path"), genSize.Draw(t, "size")
	if w.leaves(path, true) {
		t.Skip()
	}
	n, got := w.node(path, true)
	if got == nil {
		got = w.Truncate(n, size)
	}
	w.same(t, "truncate", path, got, os.Truncate(w.real(path), size))
}

func (w *twin) opRead(t *rapid.T) {
	path := genPath(true).Draw(t, "path")
	off, size := genSize.Draw(t, "off"), genSize.Draw(t, "size")
	if w.leaves(path, true) {
		t.Skip()
	}
	a, b := make([]byte, size), make([]byte, size)
	n, got := w.node(path, true)
	var gotN, wantN int
	if got == nil {
		gotN, got = w.ReadAt(n, a, off)
	}
	f, err := os.Open(w.real(path))
	if err == nil {
		wantN, err = f.ReadAt(b, off)
		must(t, f.Close())
	}
	if size == 0 {
		return // whether reading nothing meets the end is anybody's guess
	}
	if errors.Is(err, io.EOF) {
		if !errors.Is(got, io.EOF) {
			t.Fatalf("read %q: %v, want EOF", path, got)
		}
	} else if !w.same(t, "read", path, got, err) {
		return
	}
	if gotN != wantN || string(a[:gotN]) != string(b[:wantN]) {
		t.Fatalf("read %q at %d: %d bytes, want %d", path, off, gotN, wantN)
	}
}

func (w *twin) opStat(t *rapid.T) {
	path, follow := genPath(true).Draw(t, "path"), rapid.Bool().Draw(t, "follow")
	if w.leaves(path, follow) {
		t.Skip()
	}
	var info Info
	n, got := w.node(path, follow)
	if got == nil {
		info, got = w.Info(n)
	}
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	fi, err := stat(w.real(path))
	if !w.same(t, "stat", path, got, err) {
		return
	}
	at := w.Path(n)
	if info.Kind != kindOf(fi.Mode()) || (!fi.IsDir() && info.Size != fi.Size()) ||
		(info.Kind != Symlink && at != "." && info.Mode != w.mode(at, fi.Mode())) {
		t.Fatalf("stat %q: %+v, want %v %d %v", path, info, fi.Mode(), fi.Size(), w.mode(at, fi.Mode()))
	}
}

func (w *twin) opList(t *rapid.T) {
	path := rapid.OneOf(rapid.Just("."), genPath(true)).Draw(t, "path")
	if w.leaves(path, true) {
		t.Skip()
	}
	var list []Entry
	n, got := w.node(path, true)
	if got == nil {
		list, got = w.List(n)
	}
	want, err := os.ReadDir(w.real(path))
	if !w.same(t, "list", path, got, err) {
		return
	}
	if !slices.EqualFunc(list, want, func(a Entry, b fs.DirEntry) bool {
		return a.Name == b.Name() && a.Kind == kindOf(b.Type())
	}) {
		t.Fatalf("list %q: %v, want %v", path, list, want)
	}
}

func (w *twin) opMkdir(t *rapid.T) {
	path := genPath(true).Draw(t, "path")
	if w.leaves(path, false) {
		t.Skip()
	}
	got, err := w.mkdir(path), syscall.Mkdir(w.real(path), 0o755)
	if strings.HasSuffix(path, "/") && got != nil && err != nil {
		return // systems differ in which error comes first
	}
	w.same(t, "mkdir", path, got, err)
}

func (w *twin) opRemove(t *rapid.T) {
	path := genPath(false).Draw(t, "path")
	if w.leaves(path, false) {
		t.Skip()
	}
	got := w.rm(path)
	fi, err := os.Lstat(w.real(path))
	switch {
	case err != nil:
	case fi.IsDir():
		err = syscall.Rmdir(w.real(path))
	default:
		err = syscall.Unlink(w.real(path))
	}
	w.same(t, "remove", path, got, err)
}

func (w *twin) opRename(t *rapid.T) {
	from, to := genPath(false).Draw(t, "from"), genPath(false).Draw(t, "to")
	if w.leaves(from, false) || w.leaves(to, false) {
		t.Skip()
	}
	w.same(t, "rename", from+" "+to, w.mv(from, to), syscall.Rename(w.real(from), w.real(to)))
}
