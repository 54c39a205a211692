package wasi

import (
	"fmt"
	"testing"
	"time"
)

// stat describes what a filestat at atData says.
func (g *guest) stat() string {
	b := g.bytes(atData, filestatSize)
	return fmt.Sprintf("type %d, %d links, %d bytes", b[16], le.Uint64(b[24:]), le.Uint64(b[32:]))
}

func (g *guest) modified() time.Time { return time.Unix(0, int64(g.u64(atData+48))).UTC() }

func TestFilestat(t *testing.T) {
	c := begin(t, readOnly, Options{})
	for _, s := range []struct {
		path   string
		follow uint64
		want   errno
		stat   string
	}{
		{"file", 0, success, "type 4, 1 links, 12 bytes"},
		{"link", 1, success, "type 4, 1 links, 12 bytes"},
		{"link", 0, success, "type 7, 1 links, 4 bytes"},
		{"dir/inner", 1, success, "type 4, 1 links, 6 bytes"},
		{"new", 1, eNOENT, ""},
		{"dangling", 1, eNOENT, ""},
		{"loop", 1, eLOOP, ""},
		{"out", 1, eACCES, ""},
		{"../secret", 1, eACCES, ""},
		{"/data/file", 1, eACCES, ""},
		{"file/x", 1, eNOTDIR, ""},
		{"a\x00b", 1, eINVAL, ""},
		{"\xff", 1, eILSEQ, ""},
		{"file", 2, eINVAL, ""},
	} {
		p, n := c.path(s.path)
		c.want(s.want, "path_filestat_get", fdVolume, s.follow, p, n, atData)
		if s.want == success && c.stat() != s.stat {
			t.Errorf("%s: %s, want %s", s.path, c.stat(), s.stat)
		}
	}
	fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	c.ok("fd_filestat_get", fd, atData)
	device, inode := c.u64(atData), c.u64(atData+8)
	p, n := c.path("dir/../file")
	c.ok("path_filestat_get", fdVolume, 0, p, n, atData)
	if c.u64(atData) != device || c.u64(atData+8) != inode || inode == 0 {
		t.Errorf("device %d, inode %d, want %d, %d", c.u64(atData), c.u64(atData+8), device, inode)
	}
	c.ok("fd_filestat_get", fdScratch, atData)
	if c.u64(atData) == device {
		t.Error("volumes have one device")
	}
	c.want(eFAULT, "fd_filestat_get", fd, 0x10000-63)
	c.want(eFAULT, "path_filestat_get", fdVolume, 0, p, n, 0x10000-63)
}

func TestSetTimes(t *testing.T) {
	c := begin(t, writer, Options{Clock: fixedClock{wall: epoch}})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	later := epoch.Add(time.Hour)
	before := func() time.Time { c.ok("fd_filestat_get", fd, atData); return c.modified() }()
	for _, s := range []struct {
		flags uint64
		want  errno
		time  time.Time
	}{
		{0, success, before},
		{setAccess, success, before},
		{setAccessNow, success, before},
		{setModify, success, later},
		{setModifyNow, success, epoch},
		{setModify | setModifyNow, eINVAL, epoch},
		{setAccess | setAccessNow | setModify, eINVAL, epoch},
		{1 << 4, eINVAL, epoch},
		{setModify | setAccess, success, later},
	} {
		c.want(s.want, "fd_filestat_set_times", fd, 1, uint64(later.UnixNano()), s.flags)
		c.ok("fd_filestat_get", fd, atData)
		if !c.modified().Equal(s.time) {
			t.Errorf("flags %d: %v, want %v", s.flags, c.modified(), s.time)
		}
	}
	p, n := c.path("link")
	c.ok("path_filestat_set_times", fdVolume, 1, p, n, 0, uint64(time.Unix(-5, 0).UnixNano()), setModify)
	c.ok("fd_filestat_get", fd, atData)
	if c.modified().Unix() != -5 {
		t.Errorf("time %v", c.modified())
	}
	c.want(eNOTSUP, "path_filestat_set_times", fdVolume, 0, p, n, 0, 0, setModify)
	c.want(eINVAL, "path_filestat_set_times", fdVolume, 2, p, n, 0, 0, setModify)
}

func TestSize(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	size := func(want uint64) {
		t.Helper()
		c.ok("fd_filestat_get", fd, atData)
		if got := c.u64(atData + 32); got != want {
			t.Errorf("%d bytes, want %d", got, want)
		}
	}
	c.ok("fd_filestat_set_size", fd, 3)
	size(3)
	c.ok("fd_allocate", fd, 10, 5)
	size(15)
	c.ok("fd_allocate", fd, 0, 5)
	size(15)
	c.want(eINVAL, "fd_filestat_set_size", fd, 1<<63)
	c.want(eINVAL, "fd_allocate", fd, 1<<63, 1)
	c.want(eINVAL, "fd_allocate", fd, 0, 0)
	c.want(eFBIG, "fd_allocate", fd, 1<<62, 1<<62)
	c.want(eISDIR, "fd_filestat_set_size", fdVolume, 0)
	reading := c.mustOpen(fdVolume, "file", 0, rightRead|rightSetSize, 0)
	c.want(eBADF, "fd_filestat_set_size", reading, 0)
	size(15)
}
