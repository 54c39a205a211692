package stored

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// TestImportExport brings a folder in and out again.
func TestImportExport(t *testing.T) {
	scratch := quickDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(scratch, "run")
		must(rt, err)
		defer os.RemoveAll(top)
		in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
		growTree(rt, in)
		must(rt, os.Chtimes(in, time.Time{}, time.Unix(1000, 7)))
		s := newCounted()
		got, err := Import(rt.Context(), s, space, os.DirFS(in), ImportOptions{})
		must(rt, err)
		must(rt, Export(rt.Context(), now(rt, s), out))
		a, err := volume.OpenDir(in)
		must(rt, err)
		defer a.Close()
		b, err := volume.OpenDir(out)
		must(rt, err)
		defer b.Close()
		want := image(rt, a)
		if d := different(want, image(rt, b)); d != "" {
			rt.Fatalf("differ:\n%s", d)
		}
		orphans(rt, s)
		var count Imported
		for path, x := range want {
			switch {
			case path == ".":
			case x.Kind == volume.Dir:
				count.Dirs++
			default:
				count.Files++
				count.Bytes += x.Size
			}
		}
		if got != count {
			rt.Fatalf("%+v, want %+v", got, count)
		}
	})
}

// What a managed volume cannot hold is refused with its path, and nothing is
// written.
func TestImportRefuses(t *testing.T) {
	for name, want := range map[string]error{
		"link": ErrLink, "dir-link": ErrLink, "device": ErrSpecial, "pipe": ErrSpecial, "bad\xffname": ErrName, ".sandboxd-stage": ErrName,
		strings.Repeat("x", 256): ErrName,
	} {
		src := fstest.MapFS{"d/ok": {Data: []byte("ok")}}
		file := &fstest.MapFile{Data: []byte("d/ok")}
		switch name {
		case "link", "dir-link":
			file.Mode = fs.ModeSymlink | 0o777
		case "device":
			file.Mode = fs.ModeDevice
		case "pipe":
			file.Mode = fs.ModeNamedPipe
		}
		path := name
		if name != ".sandboxd-stage" {
			path = "d/" + name
		}
		src[path] = file
		s := newCounted()
		_, err := Import(t.Context(), s, space, named{src}, ImportOptions{})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.30q: %v", name, err)
		}
		if all := image(t, now(t, s)); len(all) != 1 {
			t.Errorf("%.30q: left %d paths", name, len(all))
		}
	}
}

// named lists names that fs.ValidPath refuses.
type named struct{ fstest.MapFS }

func (n named) ReadDir(name string) ([]fs.DirEntry, error) {
	var list []fs.DirEntry
	seen := map[string]bool{}
	for path, f := range n.MapFS {
		rest, below := strings.CutPrefix(path, name+"/")
		if name == "." {
			rest, below = path, true
		}
		base, _, deep := strings.Cut(rest, "/")
		if !below || seen[base] {
			continue
		}
		seen[base] = true
		list = append(list, dirEntry{base, f, deep})
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

type dirEntry struct {
	name string
	file *fstest.MapFile
	dir  bool
}

func (d dirEntry) Name() string               { return d.name }
func (d dirEntry) IsDir() bool                { return d.dir }
func (d dirEntry) Type() fs.FileMode          { return d.Mode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d, nil }
func (d dirEntry) Size() int64                { return 0 }
func (d dirEntry) ModTime() time.Time         { return d.file.ModTime }
func (d dirEntry) Sys() any                   { return nil }
func (d dirEntry) Mode() fs.FileMode {
	if d.dir {
		return fs.ModeDir | 0o755
	}
	return d.file.Mode
}

// A volume with files is filled again only when that is asked for, and then holds
// what is imported and nothing else.
func TestImportReplace(t *testing.T) {
	s := planted(t, map[string]string{"old/f": strings.Repeat("x", chunkSize), "both": "old", "kind/": ""})
	src := fstest.MapFS{"both": {Data: []byte("new"), Mode: 0o600}, "kind": {Mode: 0o644}, "d/f": {Mode: 0o644}}
	before := image(t, now(t, s))
	if _, err := Import(t.Context(), s, space, src, ImportOptions{}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v", err)
	}
	if d := different(before, image(t, now(t, s))); d != "" {
		t.Errorf("changed: %s", d)
	}
	_, err := Import(t.Context(), s, space, src, ImportOptions{Replace: true, Records: []store.Record{{Data: []byte(`{}`)}}})
	must(t, err)
	all := image(t, now(t, s))
	if len(all) != 5 || all["both"].Content != "new" || all["kind"].Kind != volume.File || all["both"].Mode != 0o600 {
		t.Errorf("%v", all)
	}
	orphans(t, s)
	records, err := s.Records(t.Context(), "", 10)
	if err != nil || len(records) != 1 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// A volume that was emptied can be filled.
func TestImportIntoEmptied(t *testing.T) {
	s := planted(t, map[string]string{"f": "x"})
	tree := now(t, s)
	g := over(t, tree)
	must(t, g.rm("f"))
	must(t, apply(t.Context(), s, tree, g.change(t)))
	_, err := Import(t.Context(), s, space, fstest.MapFS{"g": {Mode: 0o644}}, ImportOptions{})
	must(t, err)
	orphans(t, s)
}

// meddling commits something while a folder is read.
type meddling struct {
	fstest.MapFS
	do func()
}

func (m meddling) Open(name string) (fs.File, error) {
	if name == "f" {
		m.do()
	}
	return m.MapFS.Open(name)
}

func TestImportConflicts(t *testing.T) {
	for _, replace := range []bool{false, true} {
		s := newCounted()
		src := meddling{fstest.MapFS{"f": {Data: []byte("mine"), Mode: 0o644}}, func() { plant(t, s, map[string]string{"theirs": "x"}) }}
		if _, err := Import(t.Context(), s, space, src, ImportOptions{Replace: replace}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("replace %v: %v", replace, err)
		}
		if all := image(t, now(t, s)); len(all) != 2 || all["theirs"].Content != "x" {
			t.Errorf("replace %v: %v", replace, all)
		}
	}
}

// Many small files are not all held in memory: beyond a bound they are pieces,
// which are read and changed as any other file.
func TestImportManySmall(t *testing.T) {
	src := fstest.MapFS{"z-empty": {Mode: 0o644}}
	for i := range importInline/maxInline + 10 {
		src[fmt.Sprintf("%04d", i)] = &fstest.MapFile{Data: bytes.Repeat([]byte{byte(i), 1}, maxInline/2), Mode: 0o644}
	}
	s := newCounted()
	_, err := Import(t.Context(), s, space, src, ImportOptions{})
	must(t, err)
	if n := s.reset()["put"]; n != 10 {
		t.Errorf("%d pieces put", n)
	}
	tree := now(t, s)
	all := image(t, tree)
	for path, f := range src {
		if all[path].Content != string(f.Data) {
			t.Errorf("%s: other content", path)
		}
	}
	last := fmt.Sprintf("%04d", importInline/maxInline+5)
	g := over(t, tree)
	must(t, g.write(last, []byte("changed"), 0))
	want := image(t, g.Result())
	must(t, apply(t.Context(), s, tree, g.change(t)))
	if d := different(want, image(t, now(t, s))); d != "" {
		t.Error(d)
	}
}

// When a file cannot be read or put, nothing is written.
func TestImportFails(t *testing.T) {
	broken := errors.New("broken")
	s := newCounted()
	s.fault = func(op string) error { return map[string]error{"put": broken}[op] }
	large := fstest.MapFS{"f": {Data: bytes.Repeat([]byte("x"), 20*chunkSize), Mode: 0o644}}
	if _, err := Import(t.Context(), s, space, large, ImportOptions{}); !errors.Is(err, broken) {
		t.Errorf("put: %v", err)
	}
	s.fault = func(op string) error { return map[string]error{"snapshot": broken}[op] }
	if _, err := Import(t.Context(), s, space, large, ImportOptions{}); !errors.Is(err, broken) {
		t.Errorf("snapshot: %v", err)
	}
	s.fault = nil
	if _, err := Import(t.Context(), s, space, os.DirFS(filepath.Join(t.TempDir(), "missing")), ImportOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if all := image(t, now(t, s)); len(all) != 1 {
		t.Errorf("left %v", all)
	}
}

// An export goes to an empty folder, and what cannot be written to comes too.
func TestExport(t *testing.T) {
	s := newCounted()
	src := fstest.MapFS{
		"d": {Mode: fs.ModeDir | 0o555, ModTime: time.Unix(5, 0)}, "d/f": {Data: []byte("x"), Mode: 0o400, ModTime: time.Unix(6, 0)},
	}
	_, err := Import(t.Context(), s, space, src, ImportOptions{})
	must(t, err)
	dir := filepath.Join(t.TempDir(), "new", "out")
	must(t, Export(t.Context(), now(t, s), dir))
	defer os.Chmod(filepath.Join(dir, "d"), 0o755)
	for path, want := range src {
		fi, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if fi.Mode() != want.Mode || !fi.ModTime().Equal(want.ModTime) {
			t.Errorf("%s: %v %v", path, fi.Mode(), fi.ModTime())
		}
	}
	if err := Export(t.Context(), now(t, s), dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("again: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := Export(t.Context(), now(t, s), file); err == nil {
		t.Error("exported into a file")
	}
}

func TestListAndRead(t *testing.T) {
	s := planted(t, map[string]string{"d/e/f": "x", "d/g": "yy", "a": "", "d.x": ""})
	tree := now(t, s)
	for _, c := range []struct {
		path string
		deep bool
		want string
		err  error
	}{
		{".", false, "a d d.x", nil},
		{".", true, "a d d/e d/e/f d/g d.x", nil},
		{"d", false, "d/e d/g", nil},
		{"d/g", true, "d/g", nil},
		{"x", false, "", capabilities.ENOENT},
		{"a/x", false, "", capabilities.ENOTDIR},
	} {
		list, err := List(t.Context(), tree, c.path, c.deep)
		var got []string
		for _, l := range list {
			got = append(got, l.Path)
			if info, _, err := tree.Lstat(l.Path); err != nil || info != l.Info {
				t.Errorf("%s: %+v", l.Path, l.Info)
			}
		}
		if strings.Join(got, " ") != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", c.path, got, err)
		}
	}
	var b bytes.Buffer
	if err := Read(t.Context(), tree, "d/g", &b); err != nil || b.String() != "yy" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := Read(t.Context(), tree, "d", io.Discard); !errors.Is(err, capabilities.EISDIR) {
		t.Errorf("directory: %v", err)
	}
}

func TestVolumes(t *testing.T) {
	s := newCounted()
	spaces := []store.Space{
		SpaceOf("alice", "notes", "data"), SpaceOf("alice", "notes", "other"), SpaceOf("bob", "a", "z"), SpaceOf("bob", "b", "a"),
	}
	for i, sp := range append([]store.Space{{Principal: "alice", Package: "notes", Area: "kv"}}, spaces...) {
		_, err := s.Commit(t.Context(), &store.Commit{ID: fmt.Sprint(i), Writes: []store.Write{{Key: store.Key{Space: sp, Name: "x"}}}})
		must(t, err)
	}
	got, err := Volumes(t.Context(), s)
	if err != nil || !slices.Equal(got, spaces) {
		t.Errorf("%v, %v", got, err)
	}
}
