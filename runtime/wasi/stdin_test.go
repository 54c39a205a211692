package wasi

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
)

// TestBlockedInput: a guest that waits for its input is stopped when its
// context ends, and the read goes when the input does.
func TestBlockedInput(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, w := io.Pipe()
	g := start(t, Options{Stdin: r, StdinBlocks: true})
	g.vector(10)
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	late := time.AfterFunc(5*time.Second, func() { _ = w.Close() }) // or the test would hang
	defer late.Stop()
	begun := time.Now()
	_, err := g.functions["fd_read"].Call(ctx, 0, atVectors, 1, atResult)
	if _, ok := errors.AsType[*InterruptError](err); !ok || !errors.Is(err, cause) {
		t.Errorf("stopped by %v", err)
	}
	if waited := time.Since(begun); waited > 4*time.Second {
		t.Errorf("waited %v", waited)
	}
	stopped[*InterruptError](g, "fd_read", 0, atVectors, 1, atResult)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// TestBlockingInput: an input that may block is read as any other.
func TestBlockingInput(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		for _, s := range []string{"one", "two", strings.Repeat("x", 1000)} {
			if _, err := io.WriteString(w, s); err != nil {
				sent <- err
				return
			}
		}
		sent <- w.Close()
	}()
	g := start(t, Options{Stdin: r, StdinBlocks: true})
	for _, want := range []string{"one", "tw", "o", strings.Repeat("x", 1000), "", ""} {
		n := uint32(2000)
		if want == "tw" {
			n = 2
		}
		if got, e := g.read(0, n); got != want || e != success {
			t.Errorf("read %q, errno %d, want %q", got, e, want)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// TestInputErrors: what a reader fails with is told, blocking or not.
func TestInputErrors(t *testing.T) {
	for _, blocks := range []bool{false, true} {
		for name, r := range map[string]io.Reader{
			"error":    iotest.ErrReader(io.ErrUnexpectedEOF),
			"no bytes": nothing{},
		} {
			g := start(t, Options{Stdin: r, StdinBlocks: blocks})
			if _, e := g.read(0, 10); e != eIO {
				t.Errorf("%s, blocks %v: errno %d", name, blocks, e)
			}
		}
		g := start(t, Options{StdinBlocks: blocks})
		if got, e := g.read(0, 10); got != "" || e != success {
			t.Errorf("no input, blocks %v: %q, errno %d", blocks, got, e)
		}
	}
}

// nothing is a reader that gives neither bytes nor an error.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }
