package daemon_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

func greeting(packages ...config.Package) daemon.Greeting {
	return daemon.Greeting{Version: "test", Packages: packages}
}

// attach connects a client by way of the local socket. What it returns closes the
// client and waits until the attached process has ended.
func (r *rig) attach(g daemon.Greeting) (*mcp.ClientSession, func() error) {
	r.t.Helper()
	s, ended := r.attached(g)
	return s, func() error { s.Close(); return <-ended }
}

// attached is attach whose process may end by itself.
func (r *rig) attached(g daemon.Greeting) (*mcp.ClientSession, <-chan error) {
	r.t.Helper()
	client, server := newPipes()
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Attach(context.Background(), r.state, g, server.in, server.out)
		server.out.Close()
	}()
	s := r.session(&mcp.IOTransport{Reader: client.in, Writer: client.out}, nil)
	return s, ended
}

// refused returns why a daemon does not serve what it was asked to.
func (r *rig) refused(g daemon.Greeting) error {
	return daemon.Attach(context.Background(), r.state, g, strings.NewReader(""), io.Discard)
}

// Processes that attach share what is loaded already and bring their own
// packages, each for itself.
func TestAttach(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Create(), w.Say(1))
	writePackage(t, r.path("b"), "b", w.Create(), w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	c, err := config.Load(r.path("sandboxd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	own := config.Package{Source: r.path("b"), Limits: c.Limits.Package}
	one, endOne := r.attach(greeting(c.Packages[0]))
	two, endTwo := r.attach(greeting(own))
	if got := r.tools(one) + ", " + r.tools(two); got != "a_look a_save, b_look b_save" {
		t.Errorf("tools %s", got)
	}
	if text, failed := r.call(one, "a_save"); failed {
		t.Error(text)
	}
	if _, failed := r.call(two, "b_look"); !failed {
		t.Error("a lie went well")
	}
	r.metric(`sandboxd_calls_total{outcome="ok",tool="a_save"} 1`)
	r.metric(`sandboxd_calls_total{outcome="violation",tool="b_look"} 1`)
	for _, end := range []func() error{endOne, endTwo} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if got := r.tools(r.connect("")); got != "a_look a_save" {
		t.Errorf("the daemon's own tools %s", got)
	}
}

// What conflicts with what the daemon serves is an error that says so.
func TestAttachConflicts(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("other/a"), "a", w.Exit(3))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	c, err := config.Load(r.path("sandboxd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := c.Packages[0]
	folder.Folders = map[string]string{"data": t.TempDir()}
	version := greeting(c.Packages...)
	version.Version = "other"
	for name, g := range map[string]daemon.Greeting{
		"digest":  greeting(config.Package{Source: r.path("other/a"), Limits: c.Limits.Package}),
		"folders": greeting(folder),
		"version": version,
		"missing": greeting(config.Package{Source: r.path("missing")}),
	} {
		if _, ok := errors.AsType[*daemon.RefusedError](r.refused(g)); !ok {
			t.Errorf("%s: not refused", name)
		}
	}
}

// Without a daemon nothing of the client's input is read.
func TestAttachWithoutDaemon(t *testing.T) {
	r := newRig(t)
	in := strings.NewReader("x")
	if err := daemon.Attach(t.Context(), r.state, greeting(), in, io.Discard); !errors.Is(err, daemon.ErrNoDaemon) {
		t.Errorf("error %v", err)
	}
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	if err := r.start(r.options()).end(); err != nil {
		t.Error(err)
	}
	if err := daemon.Attach(t.Context(), r.state, greeting(), in, io.Discard); !errors.Is(err, daemon.ErrNoDaemon) || in.Len() != 1 {
		t.Errorf("after its end: %v", err)
	}
}

// A daemon that ends takes the attached with it, and they say why.
func TestDaemonEnds(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	c, err := config.Load(r.path("sandboxd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, ended := r.attached(greeting(c.Packages...))
	if text, failed := r.call(s, "a_look"); failed {
		t.Error(text)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, daemon.ErrGone) {
		t.Errorf("error %v", err)
	}
}

// Two daemons of one state folder are replicas; one of them has the socket, and
// the other one after it.
func TestTwoDaemons(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	second := &rig{t: t, dir: r.dir, state: r.state, log: &output{}, reload: make(chan os.Signal)}
	second.start(second.options())
	for _, r := range []*rig{r, second} {
		if text, failed := r.call(r.connect(""), "a_look"); failed {
			t.Error(text)
		}
	}
	if _, end := r.attach(greeting()); end() != nil {
		t.Error("nobody serves the socket")
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	second.eventually("the second daemon takes the socket over", func() bool {
		return !errors.Is(second.refused(greeting()), daemon.ErrNoDaemon)
	})
}

// Whatever arrives on the socket, the daemon serves on.
func TestGarbageOnSocket(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	for _, text := range []string{"", "\n", "{}\n", "GET / HTTP/1.1\r\n\r\n", `{"Protocol":"sandboxd.attach/1","Unknown":1}` + "\n", strings.Repeat("x", 2<<20)} {
		c, err := net.Dial("unix", filepath.Join(r.state, "daemon.sock"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c.Write([]byte(text))
			c.(*net.UnixConn).CloseWrite()
		}()
		c.Read(make([]byte, 1))
		c.Close()
	}
	if text, failed := r.call(r.connect(""), "a_look"); failed {
		t.Error(text)
	}
}

// Where others may write to the state folder, a socket in it is nobody's.
func TestSocketInSharedFolder(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	if err := os.Mkdir(r.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.state, 0o770); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	r.start(r.options())
	r.eventually("the warning", func() bool { return strings.Contains(r.log.String(), "local socket is not served") })
	l, err := net.Listen("unix", filepath.Join(r.state, "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := r.refused(greeting()); !errors.Is(err, daemon.ErrNoDaemon) {
		t.Errorf("error %v", err)
	}
}

// A process that says nothing holds up nobody, the end of the daemon neither.
func TestSilentProcess(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	var c net.Conn
	r.eventually("the socket", func() (ok bool) {
		var err error
		c, err = net.Dial("unix", filepath.Join(r.state, "daemon.sock"))
		return err == nil
	})
	defer c.Close()
	began := time.Now()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("end took %v", took)
	}
}
