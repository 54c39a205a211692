package runtime

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// processors lets so many guests run at once, the others in the order in which
// they came. A guest that runs hands its processor on at its next checkpoint when
// others wait: so a short call is not held up by long ones for more than their
// turns, and a machine is not loaded with more than it can run. It is about who
// runs when only. nil lets all run.
type processors struct {
	waiting atomic.Int64 // how many there are in queue

	mu    sync.Mutex
	free  int
	queue list.List // of chan struct{}: closed when a processor is handed over
}

func newProcessors(n int) *processors { return &processors{free: n} }

// seat returns what one guest takes a processor by.
func (p *processors) seat() *seat { return &seat{cpus: p} }

// take waits for a processor, and returns the cause of the context when that ends
// first.
func (p *processors) take(ctx context.Context) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := p.queue.PushBack(turn)
	p.waiting.Add(1)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-turn: // just now: it is for the next one
		p.give()
	default:
		p.queue.Remove(place)
		p.waiting.Add(-1)
	}
	return context.Cause(ctx)
}

// give hands a processor to the first that waits, or keeps it. The caller holds
// the lock.
func (p *processors) give() {
	first := p.queue.Front()
	if first == nil {
		p.free++
		return
	}
	p.waiting.Add(-1)
	close(p.queue.Remove(first).(chan struct{}))
}

func (p *processors) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give()
}

// seat is the processor that one guest runs on, or waits for. nil is on none and
// waits for none, also as a [wasi.Processor]. It is for one goroutine.
type seat struct {
	cpus  *processors
	on    bool
	since time.Time // it has been on
}

// turnTime is for how long a guest that calls the host keeps its processor while others
// wait: as long as code runs between two checkpoints, about.
const turnTime = time.Millisecond

// Take waits for a processor, unless it has one, and returns the cause of the
// context when that ends first.
func (s *seat) Take(ctx context.Context) error {
	if s == nil || s.cpus == nil || s.on {
		return nil
	}
	if err := s.cpus.take(ctx); err != nil {
		return err
	}
	s.on, s.since = true, time.Now()
	return nil
}

// Leave gives the processor up, if it has one.
func (s *seat) Leave() {
	if s != nil && s.on {
		s.on = false
		s.cpus.leave()
	}
}

// Yield gives the processor to others that wait, and waits for the next one. The
// error is that of Take.
func (s *seat) Yield(ctx context.Context) error {
	if s == nil || !s.on || s.cpus.waiting.Load() == 0 {
		return nil
	}
	s.Leave()
	return s.Take(ctx)
}

// Share is Yield for a guest that has had the processor for its turn.
func (s *seat) Share(ctx context.Context) error {
	if s == nil || !s.on || s.cpus.waiting.Load() == 0 || time.Since(s.since) < turnTime {
		return nil
	}
	return s.Yield(ctx)
}

// away gives the processor up while something is waited for, and returns what
// takes it again, if it had one.
func (s *seat) away(ctx context.Context) (back func()) {
	if s == nil || !s.on {
		return func() {}
	}
	s.Leave()
	return func() { _ = s.Take(ctx) } // whoever runs on sees that the context has ended
}
