package wasi

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// TestExit: proc_exit stops the guest and leaves its instance open.
func TestExit(t *testing.T) {
	for _, code := range []uint32{0, 1, 255, 1<<32 - 1} {
		g := start(t, Options{})
		if e := stopped[*ExitError](g, "proc_exit", uint64(code)); e.Code != code {
			t.Errorf("exit status %d, want %d", e.Code, code)
		}
		if g.IsClosed() {
			t.Error("instance closed")
		}
		// Whatever a guest does then, it stays stopped.
		stopped[*ExitError](g, "sched_yield")
		g.process = NewProcess(Options{})
		g.ok("sched_yield")
	}
}

// TestViolation: a read-only tool that writes is stopped, and the record is
// there before it is.
func TestViolation(t *testing.T) {
	c := begin(t, readOnly, Options{})
	p, n := c.path("new")
	v := stopped[*capabilities.Violation](c.guest, "path_open", fdVolume, 0, p, n, openCreate, uint64(rightRead), 0, 0, atResult)
	if v.Operation != capabilities.OpCreate || v.Object != "/data/new" || v.Hint != capabilities.ReadOnlyHint {
		t.Errorf("violation %+v", v)
	}
	if got := c.ledger.Violations(); len(got) != 1 || got[0] != *v {
		t.Errorf("recorded %v", got)
	}
	stopped[*capabilities.Violation](c.guest, "fd_close", 0)
	if got := c.ledger.Violations(); len(got) != 1 {
		t.Errorf("recorded %v", got)
	}
	c.unchanged()
}

// TestWriteOnReadingDescriptor: each way to change a file that a read-only tool
// opened for reading is stopped.
func TestWriteOnReadingDescriptor(t *testing.T) {
	for name, args := range map[string][]uint64{
		"fd_write":              {atVectors, 1, atResult},
		"fd_pwrite":             {atVectors, 1, 0, atResult},
		"fd_allocate":           {0, 1},
		"fd_filestat_set_size":  {0},
		"fd_filestat_set_times": {0, 0, setModifyNow},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, readOnly, Options{})
			fd := c.mustOpen(fdVolume, "file", 0, rightRead, flagAppend)
			c.vector(1)
			v := stopped[*capabilities.Violation](c.guest, name, append([]uint64{fd}, args...)...)
			if v.Object != "/data/file" {
				t.Errorf("violation %+v", v)
			}
			c.unchanged()
		})
	}
}

// TestLimits: a spent budget stops the guest; in scratch it is an errno.
func TestLimits(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdScratch, "big", openCreate, rightWrite, 0)
	c.want(eNOSPC, "fd_filestat_set_size", fd, 1<<40)
	if d := c.ledger.Denials(); len(d) != 1 || d[0].Capability != capabilities.CapScratch {
		t.Errorf("denials %v", d)
	}
	fd = c.mustOpen(fdVolume, "big", openCreate, rightWrite, 0)
	if l := stopped[*volume.LimitError](c.guest, "fd_filestat_set_size", fd, 1<<40); l.Resource != "writes" {
		t.Errorf("limit %v", l)
	}
}

// capped takes n bytes and then stops the guest.
type capped struct {
	n     int
	taken []byte
}

func (c *capped) Write(b []byte) (int, error) {
	k := min(len(b), c.n-len(c.taken))
	c.taken = append(c.taken, b[:k]...)
	if k < len(b) {
		return k, &OutputLimitError{Limit: c.n}
	}
	return k, nil
}

// TestOutputLimit: too much on standard output stops the guest, on standard
// error it does not.
func TestOutputLimit(t *testing.T) {
	out, log := &capped{n: 5}, &capped{n: 5}
	g := start(t, Options{Stdout: out, Stderr: log})
	g.mustWrite(2, "1234")
	g.mustWrite(2, "5678")
	g.mustWrite(2, "9")
	g.mustWrite(1, "1234")
	g.put(atData, []byte("5678"))
	p, n := g.vector(4)
	if l := stopped[*OutputLimitError](g, "fd_write", 1, p, n, atResult); l.Limit != 5 {
		t.Errorf("limit %d", l.Limit)
	}
	if string(out.taken) != "12345" || string(log.taken) != "12345" {
		t.Errorf("output %q, log %q", out.taken, log.taken)
	}
}

// TestSealed: before the request a volume can be enumerated, and nothing else.
func TestSealed(t *testing.T) {
	g := newGuest(t, forwarder(false))
	fresh := func() {
		g.process = NewProcess(Options{Volumes: []*files.Volume{files.Sealed("data", "/data")}})
	}
	fresh()
	g.ok("fd_prestat_get", fdVolume, atResult)
	g.ok("fd_prestat_dir_name", fdVolume, atPath, 5)
	g.ok("fd_fdstat_get", fdVolume, atResult)
	g.want(eBADF, "fd_prestat_get", fdVolume+1, atResult)
	p, n := g.path("file")
	for name, args := range map[string][]uint64{
		"fd_advise":               {3, 0, 0, 0},
		"fd_allocate":             {3, 0, 1},
		"fd_close":                {3},
		"fd_datasync":             {3},
		"fd_fdstat_set_flags":     {3, 0},
		"fd_fdstat_set_rights":    {3, 0, 0},
		"fd_filestat_get":         {3, atResult},
		"fd_filestat_set_size":    {3, 0},
		"fd_filestat_set_times":   {3, 0, 0, 0},
		"fd_pread":                {3, atVectors, 0, 0, atResult},
		"fd_pwrite":               {3, atVectors, 0, 0, atResult},
		"fd_read":                 {3, atVectors, 0, atResult},
		"fd_readdir":              {3, atData, 100, 0, atResult},
		"fd_renumber":             {3, 0},
		"fd_seek":                 {3, 0, 0, atResult},
		"fd_sync":                 {3},
		"fd_tell":                 {3, atResult},
		"fd_write":                {3, atVectors, 0, atResult},
		"path_create_directory":   {3, p, n},
		"path_filestat_get":       {3, 0, p, n, atResult},
		"path_filestat_set_times": {3, 0, p, n, 0, 0, 0},
		"path_link":               {3, 0, p, n, 3, p, n},
		"path_open":               {3, 0, p, n, 0, 0, 0, 0, atResult},
		"path_readlink":           {3, p, n, atData, 100, atResult},
		"path_remove_directory":   {3, p, n},
		"path_rename":             {3, p, n, 3, p, n},
		"path_symlink":            {p, n, 3, p, n},
		"path_unlink_file":        {3, p, n},
	} {
		fresh()
		if s := stopped[*files.SealedError](g, name, args...); s.Path != "/data" && s.Path != "/data/file" {
			t.Errorf("%s: %v", name, s)
		}
	}
	fresh()
	g.put(atData, subscribeFd(eventFdRead, fdVolume))
	stopped[*files.SealedError](g, "poll_oneoff", atData, atPath, 1, atResult)
}

// TestSockets: a closed tool is stopped whatever descriptor it names, an open
// one is told that there are none.
func TestSockets(t *testing.T) {
	for _, name := range []string{"sock_accept", "sock_recv", "sock_send", "sock_shutdown"} {
		for _, fd := range []uint64{0, 3, 99, 1<<32 - 1} {
			args := make([]uint64, arity(name))
			args[0] = fd
			c := begin(t, writer, Options{})
			v := stopped[*capabilities.Violation](c.guest, name, args...)
			if v.Hint != capabilities.OpenWorldHint || v.Operation != capabilities.OpSocket || v.Object != "socket" {
				t.Errorf("violation %+v", v)
			}
		}
	}
	c := begin(t, openWorld, Options{})
	c.want(eNOTSUP, "sock_shutdown", 3, 0)
	c.want(eNOTSUP, "sock_accept", 99, 0, 0)
	want := capabilities.Denial{
		Capability: capabilities.CapSocket, Operation: capabilities.OpSocket, Object: "socket", Errno: capabilities.ENOTSUP,
	}
	if d := c.ledger.Denials(); len(d) != 1 || d[0] != want {
		t.Errorf("denials %v", d)
	}
	if n := c.ledger.Denied()[capabilities.CapSocket]; n != 2 {
		t.Errorf("%d denied", n)
	}
	stopped[*capabilities.Violation](start(t, Options{}), "sock_shutdown", 3, 0)
}

// TestInterrupt: a guest that waits is stopped when its context ends.
func TestInterrupt(t *testing.T) {
	g := start(t, Options{})
	g.put(atData, subscribeClock(clockMonotonic, uint64(time.Hour), 0))
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	begun := time.Now()
	_, err := g.functions["poll_oneoff"].Call(ctx, atData, atPath, 1, atResult)
	if stop, ok := errors.AsType[*InterruptError](err); !ok || !errors.Is(stop, cause) || !errors.Is(g.process.Stop(), cause) {
		t.Errorf("%v, stop %v", err, g.process.Stop())
	}
	if waited := time.Since(begun); waited > 10*time.Second {
		t.Errorf("waited %v", waited)
	}
}

// TestOtherErrors: an error that no guest knows is EIO.
func TestOtherErrors(t *testing.T) {
	p := NewProcess(Options{})
	if e := p.result(io.ErrUnexpectedEOF); e != eIO {
		t.Errorf("errno %d", e)
	}
	if p.Stop() != nil {
		t.Errorf("stop %v", p.Stop())
	}
}
