package httpio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit leaves room for a busy machine. Tests that wait for it run in parallel.
const limit = time.Second

// patience ends tests of what would never end.
const patience = 20 * time.Second

func start(t *testing.T, configure func(*httptest.Server), h http.HandlerFunc) *httptest.Server {
	t.Helper()
	ts := httptest.NewUnstartedServer(Bound(h, limit))
	ts.Config.DisableGeneralOptionsHandler = true
	if configure != nil {
		configure(ts)
	}
	if ts.EnableHTTP2 {
		ts.StartTLS()
	} else {
		ts.Start()
	}
	t.Cleanup(ts.Close)
	return ts
}

func dial(t *testing.T, ts *httptest.Server) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// A body that is not sent holds up neither an answer that does not need it nor
// the connection.
func TestUnfinishedBody(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100_000)) })
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		w.WriteHeader(http.StatusRequestTimeout)
	})
	ts := start(t, nil, mux.ServeHTTP)
	var clients sync.WaitGroup
	for request, want := range map[string]struct {
		status string
		bytes  int
	}{
		"DELETE /none":  {"204", 0},
		"POST /short":   {"401", 0},
		"GET /short":    {"401", 0},
		"GET /long":     {"200", 100_000},
		"POST /read":    {"408", 0},
		"POST /nowhere": {"404", 0},
		"OPTIONS *":     {"400", 0},
	} {
		for _, length := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{"} {
			if request == "POST /read" && !strings.HasPrefix(length, "Content") {
				continue // one reader: its error is looked at
			}
			c := dial(t, ts)
			clients.Go(func() {
				defer c.Close()
				fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\n%s", request, length)
				b, err := io.ReadAll(c)
				if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 "+want.status)) || len(b) < want.bytes {
					t.Errorf("%s, %q: %.80q, %d bytes, %v", request, length, b, len(b), err)
				}
			})
		}
	}
	clients.Wait()
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
}

// Handlers and streams last, with and without a body in the request.
func TestQuietStreamLasts(t *testing.T) {
	t.Parallel()
	quiet := func(ctx context.Context) {
		select {
		case <-ctx.Done():
			t.Errorf("request ended: %v", context.Cause(ctx))
		case <-time.After(limit + limit/4):
		}
	}
	lasting := func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || len(b) != int(max(r.ContentLength, 0)) {
			t.Errorf("body: %q, %v", b, err)
		}
		quiet(r.Context())
		fmt.Fprint(w, "one,")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		quiet(r.Context())
		fmt.Fprint(w, "two,")
		quiet(r.Context())
	}
	var clients sync.WaitGroup
	for protocol, ts := range map[string]*httptest.Server{
		"HTTP/1.1": start(t, nil, lasting),
		"HTTP/2.0": start(t, func(ts *httptest.Server) { ts.EnableHTTP2 = true }, lasting),
	} {
		for _, body := range []string{"", "hello"} {
			clients.Go(func() {
				res, err := ts.Client().Post(ts.URL, "text/plain", strings.NewReader(body))
				if err != nil {
					t.Errorf("%s: %v", protocol, err)
					return
				}
				defer res.Body.Close()
				if b, err := io.ReadAll(res.Body); err != nil || string(b) != "one,two," || res.Proto != protocol {
					t.Errorf("%s: %s %q, %v", protocol, res.Proto, b, err)
				}
			})
		}
	}
	clients.Wait()
}

// A client that takes nothing ends, wherever the answer is on its way.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	piece := make([]byte, 1000) // is kept in buffers of net/http until the handler returns
	for name, h := range map[string]http.HandlerFunc{
		"one write": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<20)) },
		"writes": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		},
		"flushes": func(w http.ResponseWriter, _ *http.Request) {
			for c := http.NewResponseController(w); ; {
				_, _ = w.Write(piece)
				if c.Flush() != nil {
					return
				}
			}
		},
		"end": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(piece) },
	} {
		closed := make(chan struct{})
		ts := start(t, func(ts *httptest.Server) {
			ts.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					close(closed)
				}
			}
		}, h)
		c := dial(t, ts)
		if err := c.SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		go func() { // one request after another, until the server gives up
			for err := error(nil); err == nil; {
				_, err = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			}
		}()
		select {
		case <-closed:
		case <-time.After(patience):
			t.Errorf("%s: client holds the connection", name)
			c.Close()
		}
	}
}

// connection is a writer that keeps its deadlines.
type connection struct {
	*httptest.ResponseRecorder

	read, write time.Time
	seen        func(event string)
}

func (c *connection) SetReadDeadline(t time.Time) error  { c.read = t; return nil }
func (c *connection) SetWriteDeadline(t time.Time) error { c.write = t; return nil }
func (c *connection) FlushError() error                  { c.seen("flush"); return nil }

func (c *connection) Write(b []byte) (int, error) {
	c.seen("write")
	return c.ResponseRecorder.Write(b)
}

func (c *connection) Read([]byte) (int, error) { c.seen("read"); return 0, io.EOF }
func (c *connection) Close() error             { return nil }

// What is done on the connection has a deadline, the answer d after the body at
// the earliest, and nothing else has one.
func TestDeadlinesInForce(t *testing.T) {
	for _, c := range []struct {
		name       string
		body, read bool
	}{{"no body", false, false}, {"body", true, true}, {"body that is not read", true, false}} {
		var events []string
		conn := &connection{ResponseRecorder: httptest.NewRecorder()}
		conn.seen = func(event string) {
			events = append(events, event)
			if conn.write.IsZero() {
				t.Errorf("%s: %s without a deadline", c.name, event)
			}
			if pending := c.body && !c.read || event == "read"; pending == conn.read.IsZero() {
				t.Errorf("%s: %s: deadline of the body %v", c.name, event, conn.read)
			}
			if c.body && !c.read && conn.write.Sub(conn.read) < limit {
				t.Errorf("%s: %s: %v after the body", c.name, event, conn.write.Sub(conn.read))
			}
		}
		none := func() {
			if !conn.write.IsZero() {
				t.Errorf("%s: a quiet handler has a deadline", c.name)
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		if c.body {
			r.Body = conn
		}
		own := r.Body
		Bound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.read {
				_, _ = io.ReadAll(r.Body)
				none()
			}
			_, _ = w.Write([]byte("x"))
			none()
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			none()
		}), limit).ServeHTTP(conn, r)
		conn.seen("end")
		if want := map[bool]string{true: "[read write flush end]", false: "[write flush end]"}[c.read]; fmt.Sprint(events) != want {
			t.Errorf("%s: %v", c.name, events)
		}
		if r.Body != own {
			t.Errorf("%s: the body of net/http is replaced", c.name)
		}
	}
}

// Writers that are no connections are served, and a connection that is gone is
// an error.
func TestWithoutDeadlines(t *testing.T) {
	w := httptest.NewRecorder()
	Bound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	}), limit).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("hello")))
	if w.Body.String() != "hello" {
		t.Errorf("%q", w.Body)
	}

	Bound(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("flush: %v", err)
		}
	}), limit).ServeHTTP(gone{w}, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

type gone struct{ http.ResponseWriter }

func (gone) SetWriteDeadline(time.Time) error { return fmt.Errorf("set deadline: %w", net.ErrClosed) }

// Zero, as a bound that was forgotten, lets nothing through.
func TestZeroLetsNothingThrough(t *testing.T) {
	ts := httptest.NewServer(Bound(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }), 0))
	defer ts.Close()
	for _, body := range []string{"", "hello"} {
		if res, err := http.Post(ts.URL, "text/plain", strings.NewReader(body)); err == nil {
			res.Body.Close()
			t.Errorf("body %q: %d", body, res.StatusCode)
		}
	}
}
