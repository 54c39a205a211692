package postgres

import (
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/internal/pgtest"
)

// proxy stands between stores and a server, and does what networks do.
type proxy struct {
	listener net.Listener
	socket   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	fate  func() fate // of the next connections; nil: a good one
	down  bool
}

// fate tells a message, from the client or from the server, what becomes of it.
type fate func(fromClient bool, message []byte) verdict

type verdict uint8

const (
	deliver verdict = iota
	sever           // it is lost, and the connection with it
)

func newProxy(t *testing.T, server *pgtest.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, socket: server.Socket(), conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.setDown(true)
		p.wg.Wait()
	})
	return p
}

// url returns a server's URL through the proxy.
func (p *proxy) url(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	return u.String()
}

func (p *proxy) setFate(f func() fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fate = f
}

// setDown cuts off all and takes nobody, or takes them again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for c := range p.conns {
		if down {
			c.Close()
		}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		return
	}
	f := fate(func(bool, []byte) verdict { return deliver })
	if p.fate != nil {
		f = p.fate()
	}
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	var both sync.WaitGroup
	both.Go(func() { pump(client, server, true, f) })
	both.Go(func() { pump(server, client, false, f) })
	both.Wait()
}

// pump delivers what comes until it is cut; then both ends are.
func pump(from, to net.Conn, fromClient bool, f fate) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if f(fromClient, buffer[:n]) == sever {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// unlucky cuts at a random one of the next messages.
func unlucky(r *rand.Rand, mu *sync.Mutex, least, most int) func() fate {
	return func() fate {
		mu.Lock()
		left := least + r.IntN(most-least)
		mu.Unlock()
		return func(bool, []byte) verdict {
			mu.Lock()
			defer mu.Unlock()
			if left--; left <= 0 {
				return sever
			}
			return deliver
		}
	}
}
