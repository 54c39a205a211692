// Package httpio bounds how long a client of HTTP can hold up its server.
package httpio

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Bound returns h with the time bounded that a client may take to send the body
// of a request, whether h reads it or not, and to take each piece of the answer
// that h writes or flushes. How long h itself takes, and how long it is quiet
// between two pieces, is not bounded: ReadTimeout and WriteTimeout of
// http.Server would end calls and streams that last.
//
// It is for the outermost handler of an http.Server, with a ReadHeaderTimeout
// and DisableGeneralOptionsHandler beside it. Writers without deadlines, which
// are not connections, as httptest.ResponseRecorder, are not bounded. A d of 0
// lets nothing through.
func Bound(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &client{control: http.NewResponseController(w), limit: d}
		// Without a body net/http already reads on for the client's end, and a
		// deadline would look like it.
		if r.Body != nil && r.Body != http.NoBody {
			r = r.WithContext(r.Context()) // a copy: net/http goes by the body that is its own
			r.Body = c.receive(r.Body)
		}
		h.ServeHTTP(&writer{w, c}, r)
		_ = c.boundWrite() // net/http writes the rest
	})
}

// client is who sent the request and gets the answer.
type client struct {
	control *http.ResponseController
	limit   time.Duration
	bodyBy  time.Time // when the body must be there; zero: there is none
	read    atomic.Bool
}

// receive returns a body that must be there in time. An error of a deadline is
// one of the connection, which the next read or write meets as well.
func (c *client) receive(b io.ReadCloser) io.ReadCloser {
	c.bodyBy = time.Now().Add(c.limit)
	_ = c.control.SetReadDeadline(c.bodyBy)
	_ = c.control.SetWriteDeadline(c.bodyBy) // of "100 Continue"
	return &body{b, c}
}

// received lets the request last: a deadline that passes later would look like
// the client's end.
func (c *client) received() {
	if c.read.CompareAndSwap(false, true) {
		_ = c.control.SetReadDeadline(time.Time{})
		c.unboundWrite()
	}
}

func (c *client) boundWrite() error {
	from := time.Now()
	// net/http waits for what is left of a body before it begins to answer.
	if !c.read.Load() && c.bodyBy.After(from) {
		from = c.bodyBy
	}
	if err := c.control.SetWriteDeadline(from.Add(c.limit)); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// unboundWrite keeps a deadline from ending a stream that is quiet, as it does
// in HTTP/2.
func (c *client) unboundWrite() { _ = c.control.SetWriteDeadline(time.Time{}) }

type body struct {
	io.ReadCloser

	client *client
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.client.received()
	}
	return n, err
}

type writer struct {
	http.ResponseWriter

	client *client
}

func (w *writer) Write(b []byte) (int, error) {
	if err := w.client.boundWrite(); err != nil {
		return 0, err
	}
	defer w.client.unboundWrite()
	return w.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController flushes with.
func (w *writer) FlushError() error {
	if err := w.client.boundWrite(); err != nil {
		return err
	}
	defer w.client.unboundWrite()
	return w.client.control.Flush()
}

// Unwrap is for the rest of http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
