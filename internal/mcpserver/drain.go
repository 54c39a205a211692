package mcpserver

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// draining is a transport that holds back the end of its input until every
// request before it is answered. The SDK cancels what runs when the input ends,
// so a client that writes its requests and closes would get no answers.
type draining struct{ inner mcp.Transport }

func (t *draining) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainingConn{Connection: c, pending: map[jsonrpc.ID]struct{}{}, closed: make(chan struct{})}, nil
}

type drainingConn struct {
	mcp.Connection

	mu      sync.Mutex
	pending map[jsonrpc.ID]struct{}
	idle    chan struct{} // not nil once the input has ended: closed when nothing is pending

	once   sync.Once
	closed chan struct{}
}

func (c *drainingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.drain(ctx)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	// A subscription is answered when it ends, which the end of the input is.
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" {
		c.mu.Lock()
		c.pending[r.ID] = struct{}{}
		c.mu.Unlock()
	}
	return m, nil
}

func (c *drainingConn) drain(ctx context.Context) {
	c.mu.Lock()
	if len(c.pending) == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-c.closed:
	}
}

func (c *drainingConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.pending, r.ID)
		if len(c.pending) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		c.mu.Unlock()
	}
	return err
}

func (c *drainingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
