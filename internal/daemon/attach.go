package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
)

// attachProtocol names the greeting below; both sides must mean the same.
const attachProtocol = "sandboxd.attach/1"

// maxGreeting bounds a greeting, in bytes.
const maxGreeting = 1 << 20

// Greeting is what a process that attaches to a daemon begins with, as one line
// of JSON. After the daemon's answer, also a line, the connection carries MCP's
// stdio transport.
type Greeting struct {
	Protocol     string
	Version      string // of the program: settings of another one might be lost
	Packages     []config.Package
	HostTools    []string // tools of the host's own that it wants served
	TrustChanges bool
}

// reply is the daemon's answer to a greeting.
type reply struct{ Error string }

// ErrNoDaemon: no daemon of the state folder is running.
var ErrNoDaemon = errors.New("no daemon is running")

// RefusedError is a daemon that does not serve what it was asked to.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// ErrGone: the daemon ended before the client did.
var ErrGone = errors.New("the daemon that this process was attached to has ended")

// Attach has the daemon of a state folder serve a client on in and out. It
// returns [ErrNoDaemon] where none is running, [*RefusedError] where it does not
// serve these packages; nothing was read from in then.
func Attach(ctx context.Context, state string, g Greeting, in io.Reader, out io.Writer) error {
	path, err := socketPath(state)
	if err != nil {
		return err
	}
	if checkPrivate(filepath.Dir(path)) != nil {
		return ErrNoDaemon // whoever listens there need not be ours
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNoDaemon
	}
	if err != nil {
		return fmt.Errorf("local socket: %w", err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	g.Protocol = attachProtocol
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if _, err := c.Write(append(b, '\n')); err != nil {
		return ErrNoDaemon // it closed its socket at this moment
	}
	r := bufio.NewReaderSize(c, 64<<10)
	line, err := readLine(r)
	if err != nil {
		return ErrNoDaemon
	}
	var answer reply
	if err := json.Unmarshal(line, &answer); err != nil {
		return fmt.Errorf("daemon: answer: %w", err)
	}
	if answer.Error != "" {
		return &RefusedError{answer.Error}
	}
	return pipe(ctx, c, r, in, out)
}

// pipe carries the streams until the daemon closes its side.
func pipe(ctx context.Context, c net.Conn, r io.Reader, in io.Reader, out io.Writer) error {
	ended := make(chan struct{})
	go func() {
		io.Copy(c, in) // an input that cannot be read has ended, too
		close(ended)
		c.(*net.UnixConn).CloseWrite() // the daemon answers what it has read, then closes
	}()
	_, err := io.Copy(out, r)
	select {
	case <-ended:
		return nil
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(ErrGone, err)
}

// readLine reads a line of at most maxGreeting bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxGreeting:
			return nil, fmt.Errorf("greeting is over %d bytes", maxGreeting)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// socketRetry is how often a daemon looks whether the local socket is free.
const socketRetry = time.Second

// listenLocal serves the processes that attach, once no other daemon of the
// state folder does. A folder that is not private has no socket.
func (d *daemon) listenLocal(work *errgroup.Group) {
	work.Go(func() error {
		for told := false; ; told = true {
			l, release, err := bindSocket(d.State)
			switch {
			case err == nil:
				defer context.AfterFunc(d.life, release)()
				d.acceptLocal(work, l)
				return nil
			case !errors.Is(err, errHeld):
				d.Logger.Warn("local socket is not served: processes of this state folder run by themselves", "error", err)
				return nil
			case !told:
				d.Logger.Info("local socket is served by another daemon of this state folder")
			}
			select {
			case <-d.told.Done():
				return nil
			case <-time.After(socketRetry):
			}
		}
	})
}

func (d *daemon) acceptLocal(work *errgroup.Group, l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.Logger.Warn("local socket", "error", err)
			time.Sleep(100 * time.Millisecond) // out of descriptors: one of them will be free again
			continue
		}
		work.Go(func() error {
			defer c.Close()
			if err := d.attached(c); err != nil {
				d.Logger.Warn("attached process", "error", err)
			}
			return nil
		})
	}
}

// attached serves one process that attached.
func (d *daemon) attached(c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	unhook := context.AfterFunc(d.told, func() { c.SetReadDeadline(time.Now()) })
	defer unhook()
	r := bufio.NewReaderSize(c, 64<<10)
	line, err := readLine(r)
	if err != nil {
		return err
	}
	unhook()
	c.SetReadDeadline(time.Time{})
	server, release, err := d.greet(line)
	if err != nil {
		return answer(c, err)
	}
	defer release()
	if err := answer(c, nil); err != nil {
		return err
	}
	return server.ServeStdio(d.life, r, c)
}

// answer sends the daemon's answer to a greeting.
func answer(c net.Conn, refused error) error {
	var r reply
	if refused != nil {
		r.Error = refused.Error()
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}

// greet loads what a process brings, or shares what is loaded already.
func (d *daemon) greet(line []byte) (_ *mcpserver.Server, release func(), err error) {
	var g Greeting
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&g); err != nil || g.Protocol != attachProtocol || g.Version != d.Version {
		return nil, nil, fmt.Errorf("the running daemon is of another version (%s): restart it, or use another state folder with --state", d.Version)
	}
	if err := d.waitReady(); err != nil {
		return nil, nil, err
	}
	var held []*entry
	defer func() {
		if err != nil {
			d.letGo(held)
		}
	}()
	var sources []Source
	for _, spec := range g.Packages {
		src, err := d.Source(spec.Source)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, Source{Package: src})
	}
	if err := distinct(g.Packages, sources); err != nil {
		return nil, nil, err
	}
	for i, src := range sources {
		e, err := d.pool.acquire(d.told, src.Package, g.Packages[i], loading{trustChanges: g.TrustChanges, later: true})
		if err != nil {
			return nil, nil, err
		}
		held = append(held, e)
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	a := &attachment{entries: held, hostTools: g.HostTools}
	a.server, err = mcpserver.New(mcpserver.Options{Packages: packages(d.unbroken(held)), HostTools: g.HostTools, Host: d.host, Version: d.Version, Logger: d.Logger})
	if err != nil {
		return nil, nil, err
	}
	for name, served := range a.server.Names() {
		d.metrics.Serve(name, served)
	}
	for _, e := range held {
		d.host.Route(e.name, e.spec.Outbox)
	}
	d.attaches[a] = struct{}{}
	warm(held)
	return a.server, func() { d.detach(a) }, nil
}

// attachment is a process that attached, with what it is served.
type attachment struct {
	server    *mcpserver.Server
	entries   []*entry
	hostTools []string
}

// detach lets go of what an attached process held.
func (d *daemon) detach(a *attachment) {
	d.reloading.Lock()
	delete(d.attaches, a)
	d.reloading.Unlock()
	d.letGo(a.entries)
}

// waitReady waits until the daemon's own packages are loaded, so that they are
// there to be shared.
func (d *daemon) waitReady() error {
	select {
	case <-d.started:
		if state(d.state.Load()) == ready {
			return nil
		}
	case <-d.told.Done():
	}
	return errors.New("the running daemon is about to end; start again")
}

func (d *daemon) letGo(es []*entry) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	var gone []*entry
	for _, e := range es {
		if d.pool.release(e) {
			gone = append(gone, e)
			d.forget(e.name)
		}
	}
	d.drop(gone)
}
