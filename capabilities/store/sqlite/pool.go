package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// pool are connections that read. They are opened as they are needed.
type pool struct {
	open  func() (*conn, error)
	slots chan struct{}
	over  chan struct{}

	mu   sync.Mutex
	idle []*conn
}

func newPool(n int, open func() (*conn, error)) *pool {
	return &pool{open: open, slots: make(chan struct{}, n), over: make(chan struct{})}
}

// read lets f use a connection until ctx is done.
func (p *pool) read(ctx context.Context, f func(*conn) error) error {
	select {
	case <-p.over:
		return store.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case p.slots <- struct{}{}:
	}
	defer func() { <-p.slots }()
	c, err := p.take()
	if err != nil {
		return err
	}
	c.SetInterrupt(ctx)
	err = f(c)
	c.SetInterrupt(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return err
}

func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	n := len(p.idle)
	if n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.open()
}

// close waits for reads that are under way. It is called once.
func (p *pool) close() error {
	close(p.over)
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
