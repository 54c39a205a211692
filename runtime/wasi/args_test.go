package wasi

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestStrings(t *testing.T) {
	for _, list := range [][]string{nil, {""}, {"a"}, {"tool", "--flag", "", "äö"}} {
		g := start(t, Options{Args: list, Env: list})
		for _, f := range []string{"args", "environ"} {
			g.ok(f+"_sizes_get", atResult, atResult+4)
			n, size := g.u32(atResult), g.u32(atResult+4)
			text := strings.Join(append(list, ""), "\x00")
			if len(list) == 0 {
				text = ""
			}
			if n != uint32(len(list)) || size != uint32(len(text)) {
				t.Errorf("%s %q: %d strings, %d bytes", f, list, n, size)
			}
			g.ok(f+"_get", atVectors, atData)
			if got := g.bytes(atData, size); string(got) != text {
				t.Errorf("%s %q: %q", f, list, got)
			}
			at := uint32(atData)
			for i, s := range list {
				if got := g.u32(atVectors + 4*uint32(i)); got != at {
					t.Errorf("%s %q: string %d at %#x, want %#x", f, list, i, got, at)
				}
				at += uint32(len(s)) + 1
			}
		}
	}
}

func TestClocks(t *testing.T) {
	g := start(t, Options{Clock: fixedClock{wall: epoch, mono: 5 * time.Second}})
	g.ok("clock_time_get", clockRealtime, 0, atResult)
	if got := g.u64(atResult); got != uint64(epoch.UnixNano()) {
		t.Errorf("realtime %d", got)
	}
	g.ok("clock_time_get", clockMonotonic, 0, atResult)
	if got := g.u64(atResult); got != uint64(5*time.Second) {
		t.Errorf("monotonic %d", got)
	}
	for id := range uint64(2) {
		g.ok("clock_res_get", id, atResult)
		if g.u64(atResult) == 0 {
			t.Errorf("clock %d: no resolution", id)
		}
	}
	for _, id := range []uint64{2, 3, 4, 1<<32 - 1} {
		g.want(eINVAL, "clock_time_get", id, 0, atResult)
		g.want(eINVAL, "clock_res_get", id, atResult)
	}
	g.want(eFAULT, "clock_time_get", 0, 0, 0x10000-7)
	g.want(eFAULT, "clock_res_get", 0, 0x10000-7)
}

func TestDefaultClocks(t *testing.T) {
	g := start(t, Options{})
	g.ok("clock_time_get", clockRealtime, 0, atResult)
	if got := time.Unix(0, int64(g.u64(atResult))); time.Since(got).Abs() > time.Minute {
		t.Errorf("realtime %v", got)
	}
	g.ok("clock_time_get", clockMonotonic, 0, atResult)
	first := g.u64(atResult)
	g.ok("clock_time_get", clockMonotonic, 0, atResult)
	if second := g.u64(atResult); second < first {
		t.Errorf("monotonic %d after %d", second, first)
	}
}

func TestRandom(t *testing.T) {
	g := start(t, Options{Random: strings.NewReader("random bytes")})
	g.ok("random_get", atData, 6)
	if got := g.bytes(atData, 7); string(got) != "random\x00" {
		t.Errorf("random %q", got)
	}
	g.ok("random_get", 0x10000, 0)
	g.want(eFAULT, "random_get", 0x10000, 1)
	g.want(eFAULT, "random_get", 0xffffffff, 0xffffffff)
	g.want(eIO, "random_get", atData, 100)
	g.process = NewProcess(Options{})
	g.ok("random_get", 0, 0x10000)
	if bytes.Equal(g.bytes(0, 32), make([]byte, 32)) {
		t.Error("random bytes are all zero")
	}
}

func TestProc(t *testing.T) {
	g := start(t, Options{})
	g.want(eNOSYS, "proc_raise", 1)
	g.ok("sched_yield")
}

// TestStreams: what the streams do and what they look like.
func TestStreams(t *testing.T) {
	var out, log bytes.Buffer
	g := start(t, Options{Stdin: io.MultiReader(strings.NewReader("abc"), strings.NewReader("def")), Stdout: &out, Stderr: &log})
	for _, want := range []string{"abc", "def", "", ""} {
		if got, e := g.read(0, 5); got != want || e != success {
			t.Errorf("read %q, errno %d, want %q", got, e, want)
		}
	}
	g.mustWrite(1, "out")
	g.mustWrite(2, "log")
	g.mustWrite(1, "")
	if out.String() != "out" || log.String() != "log" {
		t.Errorf("output %q, log %q", out.String(), log.String())
	}
	p, n := g.vector(1)
	g.want(eBADF, "fd_write", 0, p, n, atResult)
	g.want(eBADF, "fd_read", 1, p, n, atResult)
	g.want(eBADF, "fd_read", 2, p, n, atResult)
	for fd := range uint64(3) {
		g.ok("fd_fdstat_get", fd, atData)
		if kind := g.bytes(atData, 1)[0]; kind != typeCharacter {
			t.Errorf("descriptor %d: type %d", fd, kind)
		}
		if r := rights(g.u64(atData + 8)); r&(rightSeek|rightTell) != 0 || r&(rightRead|rightWrite) == 0 {
			t.Errorf("descriptor %d: rights %#x", fd, r)
		}
		g.ok("fd_filestat_get", fd, atData)
		if kind := g.bytes(atData+16, 1)[0]; kind != typeCharacter {
			t.Errorf("descriptor %d: type %d", fd, kind)
		}
		g.want(eSPIPE, "fd_seek", fd, 0, 0, atResult)
		g.want(eSPIPE, "fd_tell", fd, atResult)
		g.want(eSPIPE, "fd_pread", fd, p, n, 0, atResult)
		g.want(eSPIPE, "fd_pwrite", fd, p, n, 0, atResult)
		g.want(eSPIPE, "fd_advise", fd, 0, 0, 0)
		g.want(eINVAL, "fd_sync", fd)
		g.want(eINVAL, "fd_datasync", fd)
		g.want(eBADF, "fd_allocate", fd, 0, 1)
		g.want(eINVAL, "fd_filestat_set_size", fd, 0)
		g.want(eINVAL, "fd_filestat_set_times", fd, 0, 0, 0)
		g.want(eNOTDIR, "fd_readdir", fd, atData, 100, 0, atResult)
		g.want(eBADF, "fd_prestat_get", fd, atResult)
		g.want(eBADF, "fd_prestat_dir_name", fd, atData, 100)
		q, m := g.path("x")
		g.want(eNOTDIR, "path_open", fd, 0, q, m, 0, 0, 0, 0, atResult)
		g.want(eNOTDIR, "path_unlink_file", fd, q, m)
	}
}

// errorReader fails once it is read.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestMissingStreams(t *testing.T) {
	g := start(t, Options{})
	if got, e := g.read(0, 5); got != "" || e != success {
		t.Errorf("read %q, errno %d", got, e)
	}
	g.mustWrite(1, "out")
	g.mustWrite(2, "log")
	g.process = NewProcess(Options{Stdin: errorReader{}})
	if _, e := g.read(0, 5); e != eIO {
		t.Errorf("errno %d", e)
	}
}
