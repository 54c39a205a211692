package wasi

import (
	"fmt"
	"slices"
	"testing"
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

var listing = []entry{
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
			if !slices.Equal(got, listing) {
				t.Errorf("got %v\nwant %v", got, listing)
			}
		})
	}
	if got, used := c.list(fd, 3, 4096); !slices.Equal(got, listing[3:]) || used != 3+2+2*direntSize {
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
	if got, _ := c.list(fd, 2, 4096); !slices.Equal(got, listing[2:]) {
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
