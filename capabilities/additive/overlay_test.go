package additive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// guest does what a program does to a volume, by path.
type guest struct {
	t *testing.T
	*volume.Overlay
}

func (g guest) place(path string) volume.Place {
	g.t.Helper()
	p, err := g.Walk(g.Root(), path, false)
	g.must(err)
	return p
}

func (g guest) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// write truncates a file, or makes it, and writes it.
func (g guest) write(path, data string) {
	g.t.Helper()
	p := g.place(path)
	n := p.Node
	if n == nil {
		var err error
		n, err = g.Create(p)
		g.must(err)
	}
	g.must(g.Open(n))
	defer g.Release(n)
	g.must(g.Truncate(n, 0))
	_, err := g.WriteAt(n, []byte(data), 0)
	g.must(err)
}

func (g guest) mv(from, to string) { g.t.Helper(); g.must(g.Rename(g.place(from), g.place(to))) }
func (g guest) rm(path string)     { g.t.Helper(); g.must(g.Remove(g.place(path))) }
func (g guest) mkdir(path string)  { g.t.Helper(); g.must(g.Mkdir(g.place(path))) }

const notes = `[{"id":1,"text":"a","x":"kept"}]`

// What programs do in fact, through an overlay on a folder.
var overlayCases = []struct {
	name string
	call func(guest)
	want string
}{
	{"reads", func(guest) {}, ""},
	{"rewrites all to add one", func(g guest) { g.write("notes.json", `[{"id":1,"text":"a","x":"kept"},{"id":2}]`) }, "append"},
	{"rewrites all and loses a field", func(g guest) { g.write("notes.json", `[{"id":1,"text":"a"},{"id":2}]`) }, "/data/notes.json#/0/x: key was removed"},
	{"rewrites as it was", func(g guest) { g.write("notes.json", notes) }, ""},
	{"replaces by renaming", func(g guest) {
		g.write("notes.json.tmp", `[{"id":1,"text":"a","x":"kept"},{"id":2}]`)
		g.mv("notes.json.tmp", "notes.json")
	}, "append"},
	{"replaces a program by renaming", func(g guest) {
		g.write("tmp", "#!/bin/sh\nmain\nmore\n")
		g.mv("tmp", "run")
	}, "append"},
	{"changes a program by renaming", func(g guest) {
		g.write("tmp", "#!/bin/sh\nexit\nmain\n")
		g.mv("tmp", "run")
	}, "/data/run: " + whyScript},
	{"removes what it made", func(g guest) {
		g.write("lock", "1")
		g.mkdir("tmp")
		g.write("tmp/a", "1")
		g.rm("tmp/a")
		g.rm("tmp")
		g.rm("lock")
	}, ""},
	{"removes and makes again", func(g guest) {
		g.rm("notes.json")
		g.write("notes.json", `[{"id":1,"text":"a","x":"kept"}, 2]`)
	}, "append"},
	{"removes", func(g guest) { g.rm("notes.json") }, "/data/notes.json: path was removed"},
	{"renames", func(g guest) { g.mv("notes.json", "old.json") }, "/data/notes.json: path was renamed"},
	{"renames, in case only", func(g guest) { g.mv("dir/A", "dir/a") }, "/data/dir/A: path was renamed"},
	{"renames and back", func(g guest) { g.mv("notes.json", "b"); g.mv("b", "notes.json") }, ""},
	{"renames old over old", func(g guest) { g.mv("dir/A", "notes.json") }, "/data/dir/A: path was renamed"},
	{"renames a folder", func(g guest) { g.mv("dir", "other") }, "/data/dir: path was renamed"},
	{"makes a folder of a file", func(g guest) { g.rm("notes.json"); g.mkdir("notes.json") }, "/data/notes.json: type was changed from file to directory"},
	{"makes folders", func(g guest) { g.mkdir("new"); g.mkdir("new/er") }, ""},
	{"empties", func(g guest) { g.write("dir/A", "") }, "/data/dir/A: line 1 was removed, changed or moved"},
	{"sets times", func(g guest) {
		n := g.place("dir/A").Node
		info, err := g.Info(n)
		g.must(err)
		g.must(g.SetTimes(n, info.ModTime.Add(-1)))
	}, ""},
}

func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"notes.json": notes, "run": "#!/bin/sh\nmain\n", "dir/A": "one\ntwo\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	host, err := volume.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	for _, c := range overlayCases {
		t.Run(c.name, func(t *testing.T) {
			o := volume.New(host, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 100}})
			defer o.Close()
			c.call(guest{t, o})
			change, err := o.Change()
			if err != nil {
				t.Fatal(err)
			}
			r, err := Judge(t.Context(), []Tree{{Path: "/data", Base: host, Result: o.Result(), Steps: change.Steps}}, Rules{})
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
