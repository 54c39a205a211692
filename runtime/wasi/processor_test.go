package wasi

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// turns is a processor that notes what is done to it.
type turns struct{ done []string }

func (p *turns) Take(ctx context.Context) error {
	p.done = append(p.done, "take")
	return context.Cause(ctx)
}

func (p *turns) Leave() { p.done = append(p.done, "leave") }

func (p *turns) Yield(ctx context.Context) error {
	p.done = append(p.done, "yield")
	return context.Cause(ctx)
}

func (p *turns) Share(ctx context.Context) error { return context.Cause(ctx) }

// TestWaitingNeedsNoProcessor: a guest that waits leaves its processor, and takes
// it again; one that does not wait keeps it.
func TestWaitingNeedsNoProcessor(t *testing.T) {
	p := &turns{}
	r, w := io.Pipe()
	g := start(t, Options{Processor: p, Stdin: r, StdinBlocks: true})
	g.poll(subscribeClock(clockMonotonic, 0, 0))
	if len(p.done) > 0 {
		t.Errorf("without waiting: %v", p.done)
	}
	g.poll(subscribeClock(clockMonotonic, uint64(time.Millisecond), 0))
	if want := []string{"leave", "take"}; !slices.Equal(p.done, want) {
		t.Errorf("a sleep: %v, want %v", p.done, want)
	}
	p.done = nil
	go func() { _, _ = w.Write([]byte("input")) }()
	g.vector(10)
	g.ok("fd_read", 0, atVectors, 1, atResult)
	if want := []string{"leave", "take"}; !slices.Equal(p.done, want) {
		t.Errorf("input: %v, want %v", p.done, want)
	}
}

// TestYieldStops: a guest whose context has ended is stopped where it would go on.
func TestYieldStops(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for name, o := range map[string]Options{"none": {}, "one": {Processor: &turns{}}} {
		p := NewProcess(o)
		p.Yield(t.Context())
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, cause) || !errors.Is(p.Stop(), cause) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			p.Yield(ctx)
		}()
		p.Close()
	}
}
