package wasi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// at returns a guest whose first read is done by a process with that input, and
// how often it was asked who does it.
func at(t *testing.T, input string) (*guest, *int) {
	t.Helper()
	asked := 0
	g := newGuest(t, forwarder(false))
	next := NewProcess(Options{Stdin: strings.NewReader(input)})
	t.Cleanup(next.Close)
	g.process = NewProcess(Options{Stdin: strings.NewReader("no"), AtInput: func(_ context.Context, m api.Module) *Process {
		if asked++; m != g.Module {
			t.Errorf("asked for %v", m)
		}
		g.process = next
		return next
	}})
	t.Cleanup(g.process.Close)
	return g, &asked
}

// The first read of standard input, and all after it, are done by the process that
// the hook names.
func TestFirstInput(t *testing.T) {
	g, asked := at(t, "abcdef")
	for _, want := range []string{"abc", "def", "", ""} {
		if got, e := g.read(0, 3); got != want || e != success {
			t.Errorf("read %q, errno %d, want %q", got, e, want)
		}
	}
	if *asked != 1 {
		t.Errorf("asked %d times", *asked)
	}
}

// A process may go on by itself.
func TestFirstInputItself(t *testing.T) {
	g := newGuest(t, forwarder(false))
	asked := 0
	g.process = NewProcess(Options{Stdin: strings.NewReader("abc"), AtInput: func(context.Context, api.Module) *Process {
		if asked++; asked > 1 {
			panic("asked again")
		}
		return g.process
	}})
	t.Cleanup(g.process.Close)
	if got, e := g.read(0, 3); got != "abc" || e != success {
		t.Errorf("read %q, errno %d", got, e)
	}
}

// What reads nothing of standard input does not count.
func TestNoInput(t *testing.T) {
	g, asked := at(t, "abc")
	g.vector(10)
	g.want(eFAULT, "fd_read", 0, 0xffffffff, 1, atResult)
	g.want(eFAULT, "fd_read", 0, atVectors, 1, 0xffffffff)
	g.want(eBADF, "fd_read", 77, atVectors, 1, atResult)
	g.want(eSPIPE, "fd_pread", 0, atVectors, 1, 0, atResult)
	g.want(eBADF, "fd_read", 1, atVectors, 1, atResult)
	if *asked != 0 {
		t.Errorf("asked %d times", *asked)
	}
	if got, e := g.read(0, 3); got != "abc" || e != success || *asked != 1 {
		t.Errorf("read %q, errno %d, asked %d times", got, e, *asked)
	}
}

// Standard input is what it is, by whatever number; the process that takes over has
// its own table.
func TestFirstInputRenumbered(t *testing.T) {
	g, asked := at(t, "abc")
	g.ok("fd_renumber", 0, 1)
	if _, e := g.read(1, 3); e != eBADF || *asked != 1 {
		t.Errorf("errno %d, asked %d times", e, *asked)
	}
	if got, e := g.read(0, 3); got != "abc" || e != success {
		t.Errorf("read %q, errno %d", got, e)
	}
}

// A guest on its way out gets nothing, and is asked about no more.
func TestFirstInputUnwinds(t *testing.T) {
	g := newGuest(t, forwarder(false))
	in := strings.NewReader("abc")
	g.process = NewProcess(Options{Stdin: in, AtInput: func(context.Context, api.Module) *Process { return nil }})
	t.Cleanup(g.process.Close)
	g.vector(10)
	g.ok("fd_read", 0, atVectors, 1, atResult)
	if in.Len() != 3 {
		t.Error("input was read")
	}
}

// A hook can stop the guest.
func TestFirstInputStops(t *testing.T) {
	why := errors.New("why")
	g := newGuest(t, forwarder(false))
	g.process = NewProcess(Options{AtInput: func(context.Context, api.Module) *Process { panic(why) }})
	t.Cleanup(g.process.Close)
	g.vector(10)
	if _, err := g.try("fd_read", 0, atVectors, 1, atResult); !errors.Is(err, why) {
		t.Errorf("stopped by %v", err)
	}
}

// Each way of changing the descriptors is seen; what changes nothing is not.
func TestUntouched(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(g *guest)
		want string
	}{
		"nothing":         {func(*guest) {}, "<nil>"},
		"looked at":       {func(g *guest) { g.ok("fd_fdstat_get", 0, atResult); g.ok("fd_prestat_get", 3, atResult) }, "<nil>"},
		"flags as before": {func(g *guest) { g.ok("fd_fdstat_set_flags", 0, 0) }, "<nil>"},
		"polled":          {func(g *guest) { g.ok("fd_filestat_get", 0, atResult) }, "<nil>"},
		"closed":          {func(g *guest) { g.ok("fd_close", 0) }, "descriptor 0 was closed"},
		"closed, last":    {func(g *guest) { g.ok("fd_close", 2) }, "descriptor 2 was closed"},
		"renumbered":      {func(g *guest) { g.ok("fd_renumber", 0, 1) }, "descriptor 0 was closed"},
		"flags":           {func(g *guest) { g.ok("fd_fdstat_set_flags", 0, 4) }, "flags or rights of descriptor 0 were changed"},
		"rights":          {func(g *guest) { g.ok("fd_fdstat_set_rights", 1, 0, 0) }, "flags or rights of descriptor 1 were changed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, Options{Volumes: []*files.Volume{files.Sealed("data", "/data")}})
			tt.do(g)
			err := g.process.Untouched()
			if got := fmt.Sprint(err); got != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// What was opened and closed again is not there any more.
func TestUntouchedOpened(t *testing.T) {
	g := start(t, Options{Volumes: []*files.Volume{
		files.Fixed("/package", volume.New(volume.Fixed(map[string][]byte{"a": nil}), volume.Options{}), nil),
	}})
	fd := g.mustOpen(3, "a", 0, rightRead, 0)
	if err := g.process.Untouched(); err == nil {
		t.Error("an open file was not seen")
	}
	g.ok("fd_close", fd)
	if err := g.process.Untouched(); err != nil {
		t.Error(err)
	}
}
