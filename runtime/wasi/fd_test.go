package wasi

import (
	"fmt"
	"math"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func TestSeek(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	for _, s := range []struct {
		by     int64
		whence uint64
		want   errno
		offset uint64
	}{
		{4, seekStart, success, 4},
		{2, seekCurrent, success, 6},
		{-1, seekCurrent, success, 5},
		{-2, seekEnd, success, 10},
		{100, seekEnd, success, 112},
		{-1, seekStart, eINVAL, 112},
		{-200, seekCurrent, eINVAL, 112},
		{math.MaxInt64, seekCurrent, eINVAL, 112},
		{math.MinInt64, seekCurrent, eINVAL, 112},
		{0, 3, eINVAL, 112},
		{math.MaxInt64, seekStart, success, math.MaxInt64},
		{1, seekCurrent, eINVAL, math.MaxInt64},
	} {
		c.want(s.want, "fd_seek", fd, uint64(s.by), s.whence, atResult)
		c.ok("fd_tell", fd, atResult)
		if got := c.u64(atResult); got != s.offset {
			t.Errorf("seek %d from %d: offset %d, want %d", s.by, s.whence, got, s.offset)
		}
	}
	if got, e := c.read(fd, 10); got != "" || e != success {
		t.Errorf("read %q, errno %d", got, e)
	}
	if _, e := c.write(fd, "xy"); e != eFBIG {
		t.Errorf("write: errno %d", e)
	}
	c.want(eISDIR, "fd_seek", fdVolume, 1, seekStart, atResult)
	c.want(eISDIR, "fd_tell", fdVolume, atResult)
	c.want(eISDIR, "fd_seek", fdVolume, 0, seekStart, atResult)
	c.want(eFAULT, "fd_seek", fd, 0, 0, 0xfffffffc)
	c.want(eFAULT, "fd_tell", fd, 0xfffffffc)
	c.want(eBADF, "fd_seek", 99, 0, 0, atResult)
}

func TestRenumber(t *testing.T) {
	c := begin(t, writer, Options{})
	a := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	b := c.mustOpen(fdVolume, "dir/inner", 0, rightRead, 0)
	c.want(eBADF, "fd_renumber", a, 99)
	c.want(eBADF, "fd_renumber", 99, a)
	c.want(eBADF, "fd_renumber", a, math.MaxUint32)
	c.ok("fd_renumber", a, a)
	c.ok("fd_renumber", b, a)
	c.want(eBADF, "fd_close", b)
	if got, _ := c.read(a, 3); got != "inn" {
		t.Errorf("read %q", got)
	}
	if again := c.mustOpen(fdVolume, "file", 0, rightRead, 0); again != b {
		t.Errorf("descriptor %d, want %d", again, b)
	}
	c.ok("fd_renumber", fdScratch, a)
	c.ok("fd_prestat_get", a, atResult)
	c.want(eBADF, "fd_prestat_get", fdScratch, atResult)
	c.ok("fd_close", a)
	c.want(eBADF, "fd_close", a)
}

// TestLowest: the lowest free number is given, also that of a stream.
func TestLowest(t *testing.T) {
	c := begin(t, writer, Options{})
	c.ok("fd_close", 1)
	if fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0); fd != 1 {
		t.Errorf("descriptor %d", fd)
	}
	c.ok("fd_close", fdScratch)
	if fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0); fd != fdScratch {
		t.Errorf("descriptor %d", fd)
	}
	c.want(eBADF, "fd_prestat_get", fdScratch, atResult)
}

// TestTooMany: a call has at most 1024 descriptors besides its two volumes.
func TestTooMany(t *testing.T) {
	c := begin(t, writer, Options{})
	for fd := fdScratch + 1; fd < maxDescriptors+2; fd++ {
		if got := c.mustOpen(fdVolume, "file", 0, rightRead, 0); got != uint64(fd) {
			t.Fatalf("descriptor %d, want %d", got, fd)
		}
	}
	if _, e := c.open(fdVolume, "new", openCreate, rightWrite, 0); e != eMFILE {
		t.Errorf("errno %d", e)
	}
	c.unchanged()
	c.ok("fd_close", 500)
	if fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0); fd != 500 {
		t.Errorf("descriptor %d", fd)
	}
	c.process.Close()
	c.want(eBADF, "fd_close", 700)
}

// TestManyVolumes: all volumes are opened, however many there are, and take
// nothing from what the guest can open.
func TestManyVolumes(t *testing.T) {
	const many = 3 * maxDescriptors
	l := writer.ledger()
	o := Options{Ledger: l}
	for i := range many {
		tree := volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 10}})
		o.Volumes = append(o.Volumes, files.Scratch(fmt.Sprintf("/%04d", i), tree, l))
	}
	g := start(t, o)
	for i := range uint64(many) {
		g.ok("fd_prestat_get", fdVolume+i, atResult)
		g.ok("fd_prestat_dir_name", fdVolume+i, atPath, 5)
		if name := string(g.bytes(atPath, 5)); name != fmt.Sprintf("/%04d", i) {
			t.Fatalf("volume %d is at %s", i, name)
		}
	}
	g.want(eBADF, "fd_prestat_get", fdVolume+many, atResult)
	for range maxDescriptors - fdVolume {
		g.mustOpen(fdVolume+many-1, "file", openCreate, rightRead, 0)
	}
	if _, e := g.open(fdVolume, "file", openCreate, rightRead, 0); e != eMFILE {
		t.Errorf("errno %d", e)
	}
}

// TestReleased: closing a descriptor, and the process, gives back the host's.
func TestReleased(t *testing.T) {
	c := begin(t, readOnly, Options{})
	start := openDescriptors(t)
	if start == 0 {
		t.Skip("descriptors cannot be counted here")
	}
	read := func(path string) uint64 {
		fd := c.mustOpen(fdVolume, path, 0, rightRead, 0)
		if got, e := c.read(fd, 3); got == "" || e != success {
			t.Fatalf("read %q, errno %d", got, e)
		}
		return fd
	}
	fd := read("file")
	read("dir/inner")
	if n := openDescriptors(t); n != start+2 {
		t.Errorf("%d descriptors open, want %d", n, start+2)
	}
	c.ok("fd_close", fd)
	if n := openDescriptors(t); n != start+1 {
		t.Errorf("%d descriptors open after close, want %d", n, start+1)
	}
	c.process.Close()
	if n := openDescriptors(t); n != start {
		t.Errorf("%d descriptors open at the end, want %d", n, start)
	}
}

func TestAdvise(t *testing.T) {
	c := begin(t, readOnly, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	for advice := range uint64(6) {
		c.ok("fd_advise", fd, 0, 100, advice)
	}
	c.want(eINVAL, "fd_advise", fd, 0, 0, 6)
	c.want(eINVAL, "fd_advise", fd, 1<<63, 0, 0)
	c.want(eINVAL, "fd_advise", fd, 0, 1<<63, 0)
	c.want(eBADF, "fd_advise", fdVolume, 0, 0, 0)
	c.ok("fd_sync", fd)
	c.ok("fd_datasync", fd)
	c.ok("fd_sync", fdVolume)
}

func TestFdstat(t *testing.T) {
	c := begin(t, writer, Options{})
	stat := func(fd uint64) string {
		c.ok("fd_fdstat_get", fd, atData)
		b := c.bytes(atData, fdstatSize)
		r := rights(le.Uint64(b[8:]))
		return fmt.Sprintf("type %d, flags %d, read %t, write %t, readdir %t, inheriting %#x",
			b[0], le.Uint16(b[2:]), r&rightRead != 0, r&rightWrite != 0, r&rightReaddir != 0, le.Uint64(b[16:]))
	}
	for _, s := range []struct {
		path    string
		rights  rights
		fdflags uint64
		want    string
	}{
		{"file", rightRead, 0, "type 4, flags 0, read true, write false, readdir false, inheriting 0x0"},
		{"file", rightRead | rightUnlinkFile | rightSetSize | rightSetTimes, 4, "type 4, flags 4, read true, write false, readdir false, inheriting 0x0"},
		{"file", rightWrite, flagAppend, "type 4, flags 1, read false, write true, readdir false, inheriting 0x0"},
		{"file", rightAllocate, 0, "type 4, flags 0, read false, write true, readdir false, inheriting 0x0"},
		{"dir", rightRead, 0, "type 3, flags 0, read false, write false, readdir true, inheriting 0x3fffffff"},
		{"link", 0, 0, "type 4, flags 0, read false, write false, readdir false, inheriting 0x0"},
	} {
		if got := stat(c.mustOpen(fdVolume, s.path, 0, s.rights, s.fdflags)); got != s.want {
			t.Errorf("%s: %s\nwant %s", s.path, got, s.want)
		}
	}
	fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	c.ok("fd_fdstat_set_flags", fd, allFlags)
	c.want(eINVAL, "fd_fdstat_set_flags", fd, allFlags+1)
	if got := stat(fd); got != "type 4, flags 31, read true, write false, readdir false, inheriting 0x0" {
		t.Error(got)
	}
	c.ok("fd_fdstat_set_flags", 0, 4)
	c.want(eFAULT, "fd_fdstat_get", fd, 0xfffffff0)
	c.want(eBADF, "fd_fdstat_get", 99, atData)
}

// TestSetRights: rights can be given up and not be taken back.
func TestSetRights(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	c.want(eNOTCAPABLE, "fd_fdstat_set_rights", fd, uint64(rightRead|rightReaddir), 0)
	c.want(eNOTCAPABLE, "fd_fdstat_set_rights", fd, uint64(rightRead), 1)
	c.ok("fd_fdstat_set_rights", fd, uint64(rightRead), 0)
	c.want(eNOTCAPABLE, "fd_fdstat_set_rights", fd, uint64(rightRead|rightWrite), 0)
	if _, e := c.write(fd, "x"); e != eNOTCAPABLE {
		t.Errorf("write: errno %d", e)
	}
	c.want(eNOTCAPABLE, "fd_seek", fd, 0, 0, atResult)
	if got, e := c.read(fd, 3); got != "old" || e != success {
		t.Errorf("read %q, errno %d", got, e)
	}
	// What is opened below inherits what was given up.
	c.ok("fd_fdstat_set_rights", fdVolume, uint64(rightOpen), uint64(allRights&^rightWrite))
	if _, e := c.open(fdVolume, "file", 0, rightWrite, 0); e != eNOTCAPABLE {
		t.Errorf("open: errno %d", e)
	}
	p, n := c.path("new")
	c.want(eNOTCAPABLE, "path_create_directory", fdVolume, p, n)
	dir := c.mustOpen(fdVolume, "dir", openDirectory, rightRead, 0)
	if _, e := c.open(dir, "inner", 0, rightWrite, 0); e != eNOTCAPABLE {
		t.Errorf("open: errno %d", e)
	}
	c.mustOpen(dir, "inner", 0, rightRead, 0)
	for _, oflags := range []uint64{openCreate, openTruncate} {
		if _, e := c.open(fdVolume, "file", oflags, rightRead, 0); e != eNOTCAPABLE {
			t.Errorf("open with %d: errno %d", oflags, e)
		}
	}
	c.unchanged()
}

func TestPrestat(t *testing.T) {
	c := begin(t, readOnly, Options{})
	for fd, want := range map[uint64]string{fdVolume: "/data", fdScratch: "/tmp"} {
		c.ok("fd_prestat_get", fd, atResult)
		if kind, n := c.bytes(atResult, 1)[0], c.u32(atResult+4); kind != 0 || n != uint32(len(want)) {
			t.Errorf("descriptor %d: type %d, %d bytes", fd, kind, n)
		}
		c.want(eNAMETOOLONG, "fd_prestat_dir_name", fd, atData, uint64(len(want)-1))
		c.ok("fd_prestat_dir_name", fd, atData, uint64(len(want)))
		if got := c.bytes(atData, uint32(len(want))); string(got) != want {
			t.Errorf("descriptor %d: %q, want %q", fd, got, want)
		}
	}
	c.want(eFAULT, "fd_prestat_get", fdVolume, 0xfffffffc)
	c.want(eFAULT, "fd_prestat_dir_name", fdVolume, 0xfffffffc, 5)
	c.want(eBADF, "fd_prestat_get", fdScratch+1, atResult)
	fd := c.mustOpen(fdVolume, "dir", openDirectory, rightRead, 0)
	c.want(eBADF, "fd_prestat_get", fd, atResult)
	c.want(eBADF, "fd_prestat_dir_name", fd, atData, 100)
}
