package wasi

import (
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// goReading are the rights that Go asks for with every file it opens for
// reading (fileRights without writeRights, syscall/fs_wasip1.go).
const goReading = allRights &^ (rightSockShutdown | rightSockAccept | rightDatasync | rightWrite | rightAllocate | rightPathSetSize)

// TestOpenHabits: rights that are asked for out of habit are no intent.
func TestOpenHabits(t *testing.T) {
	c := begin(t, readOnly, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, goReading, 0)
	if got, _ := c.read(fd, 3); got != "old" {
		t.Errorf("read %q", got)
	}
	c.mustOpen(fdVolume, "dir", 0, goReading, 0)
	c.mustOpen(fdVolume, ".", openDirectory, goReading, 0)
	c.mustOpen(fdVolume, "file", 0, goReading, flagAppend)
	if _, e := c.open(fdVolume, "file", 0, rightRead|rightWrite, 0); e != eROFS {
		t.Errorf("errno %d", e)
	}
	if _, e := c.open(fdVolume, "file", openCreate, rightRead|rightWrite, 0); e != eROFS {
		t.Errorf("errno %d", e)
	}
	if _, e := c.open(fdVolume, "file", openCreate|openExclusive, rightWrite, 0); e != eEXIST {
		t.Errorf("errno %d", e)
	}
	if d := c.ledger.Denials(); len(d) != 1 || d[0].Errno != capabilities.EROFS {
		t.Errorf("denials %v", d)
	}
	c.unchanged()
}

// TestOpenIntent: each way to ask for a change in an open stops a read-only
// tool.
func TestOpenIntent(t *testing.T) {
	for name, s := range map[string]struct {
		path    string
		oflags  uint64
		rights  rights
		fdflags uint64
		op      capabilities.Operation
	}{
		"write":                 {"file", 0, rightWrite, 0, capabilities.OpWrite},
		"append":                {"file", 0, rightWrite, flagAppend, capabilities.OpWrite},
		"allocate":              {"file", 0, rightAllocate, 0, capabilities.OpWrite},
		"truncate":              {"file", openTruncate, rightRead, 0, capabilities.OpTruncate},
		"truncate, no rights":   {"file", openTruncate, 0, 0, capabilities.OpTruncate},
		"truncate to write":     {"file", openTruncate, rightRead | rightWrite, 0, capabilities.OpTruncate},
		"create":                {"new", openCreate, rightRead, 0, capabilities.OpCreate},
		"create, no rights":     {"new", openCreate, 0, 0, capabilities.OpCreate},
		"create through a link": {"dangling", openCreate, rightRead, 0, capabilities.OpCreate},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, readOnly, Options{})
			p, n := c.path(s.path)
			v := stopped[*capabilities.Violation](c.guest, "path_open", fdVolume, 1, p, n, s.oflags, uint64(s.rights), 0, s.fdflags, atResult)
			if v.Operation != s.op {
				t.Errorf("operation %s, want %s", v.Operation, s.op)
			}
			c.unchanged()
		})
	}
}

// TestOpenRefused: bad arguments are refused before anything is looked at.
func TestOpenRefused(t *testing.T) {
	c := begin(t, writer, Options{})
	p, n := c.path("new")
	r := uint64(rightRead | rightWrite)
	c.want(eINVAL, "path_open", fdVolume, 2, p, n, openCreate, r, 0, 0, atResult)
	c.want(eINVAL, "path_open", fdVolume, 0, p, n, openCreate|16, r, 0, 0, atResult)
	c.want(eINVAL, "path_open", fdVolume, 0, p, n, openCreate, r, 0, allFlags+1, atResult)
	c.want(eFAULT, "path_open", fdVolume, 0, p, n, openCreate, r, 0, 0, 0x10000-3)
	c.want(eFAULT, "path_open", fdVolume, 0, 0x10000-2, 3, openCreate, r, 0, 0, atResult)
	c.want(eNAMETOOLONG, "path_open", fdVolume, 0, 0, maxPath+1, openCreate, r, 0, 0, atResult)
	c.want(eBADF, "path_open", 99, 0, p, n, openCreate, r, 0, 0, atResult)
	c.want(eINVAL, "path_open", fdVolume, 0, p, 0, openCreate, r, 0, 0, atResult)
	fd := c.mustOpen(fdVolume, "file", 0, rightRead, 0)
	c.want(eNOTDIR, "path_open", fd, 0, p, n, openCreate, r, 0, 0, atResult)
	if _, e := c.open(fdVolume, strings.Repeat("n", 256), openCreate, rightWrite, 0); e != eNAMETOOLONG {
		t.Errorf("errno %d", e)
	}
	c.unchanged()
}

// TestNames: paths are made, moved and removed.
func TestNames(t *testing.T) {
	c := begin(t, writer, Options{})
	do := func(want errno, name, path string) {
		t.Helper()
		p, n := c.path(path)
		c.want(want, name, fdVolume, p, n)
	}
	rename := func(want errno, from, to string) {
		t.Helper()
		p, n := c.path(from)
		c.put(atPath2, []byte(to))
		c.want(want, "path_rename", fdVolume, p, n, fdVolume, atPath2, uint64(len(to)))
	}
	do(success, "path_create_directory", "new")
	do(eEXIST, "path_create_directory", "new")
	do(eNOENT, "path_create_directory", "nowhere/new")
	rename(success, "file", "new/file")
	rename(eNOENT, "file", "new/file")
	rename(eINVAL, "new", "new/new")
	rename(eISDIR, "new/file", "hollow")
	rename(eNOTDIR, "hollow", "new/file")
	rename(eNOTEMPTY, "hollow", "new")
	do(eNOTEMPTY, "path_remove_directory", "new")
	do(eNOTDIR, "path_remove_directory", "new/file")
	do(eISDIR, "path_unlink_file", "new")
	do(eBUSY, "path_remove_directory", ".")
	do(success, "path_unlink_file", "new/file")
	do(eNOENT, "path_unlink_file", "new/file")
	do(success, "path_remove_directory", "new")
	do(eACCES, "path_unlink_file", "../secret")
	rename(eACCES, "hollow", "../hollow")
	p, n := c.path("hollow")
	c.want(eXDEV, "path_rename", fdVolume, p, n, fdScratch, p, n)
	c.want(eFAULT, "path_rename", fdVolume, p, n, fdVolume, 0x10000, 1)
	c.want(eFAULT, "path_create_directory", fdVolume, 0x10000, 1)
}

// TestLinks: none can be made, those that are there are read.
func TestLinks(t *testing.T) {
	c := begin(t, openWorld, Options{})
	readlink := func(want errno, path string, size uint64) string {
		t.Helper()
		p, n := c.path(path)
		c.want(want, "path_readlink", fdVolume, p, n, atData, size, atResult)
		return string(c.bytes(atData, c.u32(atResult)))
	}
	if got := readlink(success, "link", 100); got != "file" {
		t.Errorf("target %q", got)
	}
	if got := readlink(success, "link", 2); got != "fi" {
		t.Errorf("target %q", got)
	}
	for _, path := range []string{"out", "outdir", "absolute", "dir/up"} {
		c.put(atData, make([]byte, 100))
		readlink(eACCES, path, 100)
		if s := string(c.bytes(atData, 100)); strings.Contains(s, "secret") {
			t.Errorf("%s shows %q", path, s)
		}
	}
	readlink(eINVAL, "file", 100)
	p, n := c.path("new")
	c.want(eFAULT, "path_readlink", fdVolume, p, n, 0x10000, 1, atResult)
	for _, fd := range []uint64{fdVolume, fdScratch} {
		c.want(ePERM, "path_symlink", p, n, fd, p, n)
		c.want(ePERM, "path_link", fdVolume, 0, p, n, fd, p, n)
	}
	c.want(eINVAL, "path_link", fdVolume, 2, p, n, fdVolume, p, n)
	c.want(eBADF, "path_link", 99, 0, p, n, fdVolume, p, n)
	c.want(eFAULT, "path_symlink", 0x10000, 1, fdVolume, p, n)
	if d := c.ledger.Denied(); d[capabilities.CapLink] != 4 || d[capabilities.CapVolume] != 4 {
		t.Errorf("denied %v", d)
	}
	c.unchanged()
}
