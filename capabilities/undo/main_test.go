package undo

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// item is one path of a tree that a test makes up.
type item struct {
	kind    volume.Kind
	mode    fs.FileMode
	time    time.Time
	data    string // of a link: its target
	denied  bool   // may not be read
	version int
}

// forest is a base that is a map. It has all that a folder can have.
type forest map[string]item

var when = time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)

// planted returns a tree: a name that ends in a slash is a directory, a content
// that begins with "->" the target of a link. Parents are made.
func planted(files map[string]string) forest {
	f := forest{".": {kind: volume.Dir, mode: 0o755, time: when}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := strings.TrimSuffix(name, "/")
		for i := range len(path) {
			if path[i] == '/' {
				f.dir(path[:i])
			}
		}
		switch target, link := strings.CutPrefix(files[name], "->"); {
		case path != name:
			f.dir(path)
		case link:
			f[path] = item{kind: volume.Symlink, mode: 0o777, data: target}
		case files[name] == "special":
			f[path] = item{kind: volume.Special, mode: 0o600}
		default:
			f[path] = item{kind: volume.File, mode: 0o644, time: when, data: files[name]}
		}
	}
	return f
}

func (f forest) dir(path string) {
	if _, ok := f[path]; !ok {
		f[path] = item{kind: volume.Dir, mode: 0o755, time: when}
	}
}

func (f forest) Lstat(name string) (volume.Info, volume.Stamp, error) {
	for i := range len(name) {
		if name[i] == '/' && f[name[:i]].kind == volume.Symlink {
			return volume.Info{}, volume.Stamp{}, capabilities.EIO // nobody may ask for what is behind a link
		}
	}
	it, ok := f[name]
	if !ok {
		return volume.Info{}, volume.Stamp{}, capabilities.ENOENT
	}
	info := volume.Info{Kind: it.kind, Size: int64(len(it.data)), Mode: it.mode, ModTime: it.time}
	st := volume.Stamp{Exists: true, Kind: it.kind, Mode: it.mode}
	if it.kind != volume.Dir {
		st.Size, st.ModTime, st.Inode = info.Size, it.time, uint64(it.version)
	}
	return info, st, nil
}

func (f forest) ReadDir(name string) ([]volume.Entry, error) {
	if f[name].kind != volume.Dir {
		return nil, capabilities.ENOTDIR
	}
	var list []volume.Entry
	for _, p := range slices.Sorted(maps.Keys(f)) {
		if p != "." && dirOf(p) == name {
			list = append(list, volume.Entry{Name: p[strings.LastIndexByte(p, '/')+1:], Kind: f[p].kind})
		}
	}
	return list, nil
}

func (f forest) Readlink(name string) (string, error) { return f[name].data, nil }

func (f forest) Open(name string) (volume.Content, error) {
	it, ok := f[name]
	switch {
	case !ok:
		return nil, capabilities.ENOENT
	case it.kind != volume.File || it.denied:
		return nil, capabilities.EACCES
	}
	return &leaf{strings.NewReader(it.data), it}, nil
}

type leaf struct {
	*strings.Reader
	it item
}

func (l *leaf) Close() error { return nil }

func (f forest) change(path string, do func(*item)) {
	it := f[path]
	do(&it)
	it.version++
	f[path] = it
}

// copied returns a tree as a map.
func copied(t tester, b volume.Base) forest {
	t.Helper()
	f := forest{}
	var walk func(path string)
	walk = func(path string) {
		info, _, err := b.Lstat(path)
		must(t, err)
		it := item{kind: info.Kind, mode: info.Mode, time: info.ModTime}
		switch info.Kind {
		case volume.Dir:
			list, err := b.ReadDir(path)
			must(t, err)
			for _, e := range list {
				walk(join(path, e.Name))
			}
		case volume.File:
			c, err := b.Open(path)
			must(t, err)
			data := make([]byte, info.Size)
			must(t, readFull(c, data, 0))
			must(t, c.Close())
			it.data = string(data)
		case volume.Symlink:
			it.data, err = b.Readlink(path)
			must(t, err)
		case volume.Special:
		}
		f[path] = it
	}
	walk(".")
	return f
}

// guest does what a program does, by path.
type guest struct{ *volume.Overlay }

// over returns a view of a base, with a clock that is a day after another.
func over(b volume.Base, days int) guest {
	at := when.Add(time.Duration(days) * 24 * time.Hour)
	return guest{volume.New(b, volume.Options{
		Budget: &volume.Budget{Bytes: 256 << 20, Files: 10000},
		Now:    func() time.Time { at = at.Add(time.Second); return at },
	})}
}

func (g guest) write(path, data string, off int64) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	n := p.Node
	if n == nil {
		if n, err = g.Create(p); err != nil {
			return err
		}
	}
	if off < 0 {
		if err := g.Truncate(n, 0); err != nil {
			return err
		}
		off = 0
	}
	_, err = g.WriteAt(n, []byte(data), off)
	return err
}

func (g guest) at(path string, do func(volume.Place) error) error {
	p, err := g.Walk(g.Root(), path, false)
	if err != nil {
		return err
	}
	return do(p)
}

func (g guest) rm(path string) error    { return g.at(path, g.Remove) }
func (g guest) mkdir(path string) error { return g.at(path, g.Mkdir) }

func (g guest) mv(from, to string) error {
	return g.at(from, func(f volume.Place) error {
		return g.at(to, func(t volume.Place) error { return g.Rename(f, t) })
	})
}

func (g guest) truncate(path string, size int64) error {
	return g.at(path, func(p volume.Place) error {
		if p.Node == nil {
			return capabilities.ENOENT
		}
		return g.Truncate(p.Node, size)
	})
}

func (g guest) touch(path string, at time.Time) error {
	if path == "." {
		return g.SetTimes(g.Root(), at)
	}
	return g.at(path, func(p volume.Place) error {
		if p.Node == nil {
			return capabilities.ENOENT
		}
		return g.SetTimes(p.Node, at)
	})
}

// rmAll removes a path with all that is in it.
func (g guest) rmAll(path string) error {
	list, err := g.Result().ReadDir(path)
	if err == nil {
		for _, e := range list {
			if err := g.rmAll(join(path, e.Name)); err != nil {
				return err
			}
		}
	}
	return g.rm(path)
}

// image returns what a tree shows: by path, kind, mode, time and content.
func image(t tester, b volume.Base) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(path string)
	walk = func(path string) {
		info, _, err := b.Lstat(path)
		must(t, err)
		switch info.Kind {
		case volume.Dir:
			out[path] = fmt.Sprintf("dir %v %v", info.Mode, info.ModTime.UTC())
			list, err := b.ReadDir(path)
			must(t, err)
			for _, e := range list {
				walk(join(path, e.Name))
			}
		case volume.File:
			f, err := b.Open(path)
			must(t, err)
			data := make([]byte, info.Size)
			must(t, readFull(f, data, 0))
			must(t, f.Close())
			out[path] = fmt.Sprintf("file %v %v %s", info.Mode, info.ModTime.UTC(), data)
		case volume.Symlink:
			target, err := b.Readlink(path)
			must(t, err)
			out[path] = "link " + target
		case volume.Special:
			out[path] = "special"
		}
	}
	walk(".")
	return out
}

func sameImage(t tester, what string, got, want map[string]string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[p]; !ok || g != want[p] {
			t.Fatalf("%s: %s: got %.90q (%v), want %.90q", what, p, g, ok, want[p])
		}
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[p]; !ok {
			t.Fatalf("%s: %s: got %.90q, want nothing", what, p, got[p])
		}
	}
}

// treeOf returns what a guest did in the volume "data".
func treeOf(t tester, b volume.Base, g guest) Tree {
	t.Helper()
	c, err := g.Change()
	must(t, err)
	return Tree{Name: "data", Path: "/data", Base: b, Result: g.Result(), Steps: c.Steps}
}

// recorded returns the record of what a guest did, by way of its encoding.
func recorded(t tester, blobs store.Blobs, b volume.Base, g guest) *Record {
	t.Helper()
	rec, err := Build(context.Background(), Options{Blobs: blobs}, []Tree{treeOf(t, b, g)}, nil)
	must(t, err)
	return again(t, rec)
}

// again fills in which call a record is of, and returns it encoded and decoded.
func again(t tester, rec *Record) *Record {
	t.Helper()
	rec.CallID, rec.Principal, rec.Package, rec.Tool, rec.Time = "c1", "local", "notes", "add_note", when
	b, err := rec.Encode()
	must(t, err)
	out, err := Decode(b)
	must(t, err)
	return out
}

// only is a transaction on the volume "data".
func only(g guest, blobs store.Blobs) Where {
	return Where{Blobs: blobs, Volumes: func(name string) *volume.Overlay {
		if name == "data" {
			return g.Overlay
		}
		return nil
	}}
}

// undone takes back a record over a base and returns the guest that did it.
func undone(t tester, blobs store.Blobs, b volume.Base, rec *Record) guest {
	t.Helper()
	g := over(b, 9)
	must(t, Restore(context.Background(), rec, only(g, blobs)))
	return g
}

// complete reports whether a call can be taken back, and fails when it should be.
func complete(t tester, rec *Record) bool {
	t.Helper()
	for _, l := range rec.Lost {
		if l.Why != WhyLink || canLink {
			t.Fatalf("lost: %v", rec.Lost)
		}
	}
	return rec.Complete()
}

// roundTrip does something, takes it back, and takes that back.
func roundTrip(t tester, b volume.Base, do func(guest)) *Record {
	t.Helper()
	blobs := memstore.New()
	before := image(t, b)
	call := over(b, 1)
	do(call)
	left := image(t, call.Result())
	rec := recorded(t, blobs, b, call)
	if !complete(t, rec) {
		return rec
	}
	back := undone(t, blobs, call.Result(), rec)
	sameImage(t, "undo", image(t, back.Result()), before)
	rec2 := recorded(t, blobs, call.Result(), back)
	if !complete(t, rec2) {
		t.Fatalf("undo lost: %v", rec2.Lost)
	}
	redo := undone(t, blobs, back.Result(), rec2)
	sameImage(t, "redo", image(t, redo.Result()), left)
	return rec
}
