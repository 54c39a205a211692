package wasi

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// entry is what fd_readdir says of a name.
type entry struct {
	next uint64
	kind byte
	name string
}

// list reads entries of a directory into a buffer of n bytes, whole ones only.
func (g *guest) list(fd, cookie uint64, n uint32) (all []entry, used uint32) {
	g.t.Helper()
	g.ok("fd_readdir", fd, atData, uint64(n), cookie, atResult)
	used = g.u32(atResult)
	b := g.bytes(atData, used)
	for len(b) >= direntSize {
		name := le.Uint32(b[16:])
		if uint32(len(b)) < direntSize+name {
			break
		}
		all = append(all, entry{le.Uint64(b), b[20], string(b[direntSize : direntSize+name])})
		b = b[direntSize+name:]
	}
	return all, used
}

var listed = []entry{
	{1, typeDirectory, "."}, {2, typeDirectory, ".."}, {3, typeRegular, "inner"}, {4, typeDirectory, "sub"}, {5, typeLink, "up"},
}

// TestReaddir: reading with whatever buffer gives every name once.
func TestReaddir(t *testing.T) {
	c := begin(t, readOnly, Options{})
	fd := c.mustOpen(fdVolume, "dir", openDirectory, rightRead, 0)
	for _, n := range []uint32{29, 30, 31, 50, 53, 54, 80, 4096} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var got []entry
			var cookie uint64
			for {
				some, used := c.list(fd, cookie, n)
				got = append(got, some...)
				if used < n {
					break
				}
				if len(some) == 0 {
					t.Fatalf("no entry fits")
				}
				cookie = got[len(got)-1].next
			}
			if !slices.Equal(got, listed) {
				t.Errorf("got %v\nwant %v", got, listed)
			}
		})
	}
	if got, used := c.list(fd, 3, 4096); !slices.Equal(got, listed[3:]) || used != 3+2+2*direntSize {
		t.Errorf("from 3: %v, %d bytes", got, used)
	}
	for _, cookie := range []uint64{5, 6, 1 << 40, 1<<64 - 1} {
		if got, used := c.list(fd, cookie, 4096); len(got) > 0 || used != 0 {
			t.Errorf("from %d: %v, %d bytes", cookie, got, used)
		}
	}
	if _, used := c.list(fd, 0, 0); used != 0 {
		t.Errorf("%d bytes in no buffer", used)
	}
	c.want(eFAULT, "fd_readdir", fd, atData, 0xffffffff, 0, atResult)
	c.want(eFAULT, "fd_readdir", fd, atData, 100, 0, 0x10000-3)
	file := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	c.want(eNOTDIR, "fd_readdir", file, atData, 100, 0, atResult)
}

// TestReaddirSnapshot: what changes while a directory is read is seen when it
// is read from its start again.
func TestReaddirSnapshot(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "dir", openDirectory, rightRead, 0)
	c.list(fd, 0, 4096)
	p, n := c.path("dir/inner")
	c.ok("path_unlink_file", fdVolume, p, n)
	if got, _ := c.list(fd, 2, 4096); !slices.Equal(got, listed[2:]) {
		t.Errorf("got %v", got)
	}
	if got, _ := c.list(fd, 0, 4096); len(got) != 4 || got[2].name != "sub" {
		t.Errorf("got %v", got)
	}
	// A cookie without a beginning looks at the directory too.
	again := c.mustOpen(fdVolume, "dir", openDirectory, rightRead, 0)
	if got, _ := c.list(again, 2, 4096); len(got) != 2 || got[0].name != "sub" {
		t.Errorf("got %v", got)
	}
}

// wide is a folder with many files.
type wide struct {
	volume.Base
	files int
}

func (w wide) ReadDir(string) ([]volume.Entry, error) {
	list := make([]volume.Entry, w.files)
	for i := range list {
		list[i] = volume.Entry{Name: fmt.Sprintf("file-%06d", i)}
	}
	return list, nil
}

func heap() uint64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestReaddirMemory: what is kept of listings does not grow with the number of
// descriptors, be they read to their end or not.
func TestReaddirMemory(t *testing.T) {
	l := readOnly.ledger()
	tree := volume.New(wide{volume.Mem(), 5000}, volume.Options{})
	g := start(t, Options{Ledger: l, Volumes: []*files.Volume{files.New("data", "/data", tree, l)}})
	before := heap()
	for i := range 1000 {
		fd := g.mustOpen(fdVolume, ".", openDirectory, rightRead, 0)
		n := uint32(64 + i%2*dataSize)
		var next uint64
		for range 3 {
			all, _ := g.list(fd, next, n)
			next = all[len(all)-1].next
		}
	}
	if grown := int64(heap()) - int64(before); grown > 32<<20 {
		t.Errorf("heap grew by %d MiB", grown>>20)
	}
	goruntime.KeepAlive(g)
	total := 0
	for _, l := range g.process.listings {
		total += len(l.entries)
	}
	if len(g.process.listings) > maxListings || total > maxListed {
		t.Errorf("%d listings with %d entries kept", len(g.process.listings), total)
	}
}

// TestReaddirLarge: a listing that is larger than all may be together is kept
// while it is read, and no other.
func TestReaddirLarge(t *testing.T) {
	p := NewProcess(Options{})
	small, large := &listing{entries: make([]volume.Entry, 10)}, &listing{entries: make([]volume.Entry, maxListed+1)}
	p.keep(small)
	p.keep(large)
	if small.entries != nil || large.entries == nil {
		t.Error("the large one is not kept, or the small one is")
	}
	p.keep(large)
	small.entries = make([]volume.Entry, 10)
	p.keep(small)
	if large.entries != nil || small.entries == nil || len(p.listings) != 1 {
		t.Error("the large one is kept, or the small one is not")
	}
}

// TestReaddirDropped: a guest that reads many directories at a time, and
// changes them while it does, sees each name that stays once.
func TestReaddirDropped(t *testing.T) {
	const many, names = 2 * maxListings, 60
	l := writer.ledger()
	tree := volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 22, Files: 1000}})
	g := start(t, Options{Ledger: l, Volumes: []*files.Volume{files.Scratch("/tmp", tree, l)}})
	var want []string
	for i := range names {
		name := fmt.Sprintf("%02d", i)
		if i%10 == 0 {
			name = "!" + name // sorts before the dots
		}
		want = append(want, name)
		g.ok("fd_close", g.mustOpen(fdVolume, name, openCreate, rightRead, 0))
	}
	type reader struct {
		fd, next uint64
		got      []string
		ended    bool
	}
	readers := make([]*reader, many)
	for i := range readers {
		readers[i] = &reader{fd: g.mustOpen(fdVolume, ".", openDirectory, rightRead, 0)}
	}
	for round := 0; slices.ContainsFunc(readers, func(r *reader) bool { return !r.ended }); round++ {
		if round > 10*names {
			t.Fatal("no end")
		}
		if round%5 == 4 && len(want) > 5 { // every reader is past some of the names, and not of others
			i := (round * 7) % len(want)
			p, n := g.path(want[i])
			g.ok("path_unlink_file", fdVolume, p, n)
			want = slices.Delete(want, i, i+1)
			g.ok("fd_close", g.mustOpen(fdVolume, fmt.Sprintf("+%02d", round), openCreate, rightRead, 0))
		}
		for i, r := range readers {
			all, used := g.list(r.fd, r.next, uint32(30+i*3))
			if len(all) == 0 { // the buffer was too small: again with a larger one
				all, used = g.list(r.fd, r.next, 200)
			}
			for _, e := range all {
				r.got, r.next = append(r.got, e.name), e.next
			}
			r.ended = r.ended || used == 0
		}
	}
	for i, r := range readers {
		slices.Sort(r.got)
		if len(slices.Compact(slices.Clone(r.got))) != len(r.got) {
			t.Errorf("reader %d: a name twice: %s", i, strings.Join(r.got, " "))
		}
		for _, w := range append([]string{".", ".."}, want...) {
			if _, found := slices.BinarySearch(r.got, w); !found {
				t.Errorf("reader %d: no %s: %s", i, w, strings.Join(r.got, " "))
			}
		}
	}
}
