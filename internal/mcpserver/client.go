package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Client is an MCP client of a [Server] in the same process, connected by a
// pipe: what it sees went through the protocol.
type Client struct {
	session *mcp.ClientSession
	server  *mcp.ServerSession
}

// Connect returns a client. version is the protocol version it asks for, empty
// for the newest. Close it.
func (s *Server) Connect(ctx context.Context, version string) (*Client, error) {
	near, far := mcp.NewInMemoryTransports()
	server, err := s.mcp.Connect(ctx, far, nil)
	if err != nil {
		return nil, fmt.Errorf("server side: %w", err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "sandboxd", Version: "devel"}, nil)
	session, err := c.Connect(ctx, near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("client side: %w", err), server.Close())
	}
	return &Client{session: session, server: server}, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	err := c.session.Close()
	c.server.Wait() // ends with the client's side of the pipe; its error is the end of the pipe
	return err
}

// Reply is the result of a call as a client sees it.
type Reply struct {
	Text      string // of all text contents, a line each
	IsError   bool
	CallID    string
	Committed bool
	Effects   []capabilities.Effect
	Violation *capabilities.Violation // nil: none
}

// Call calls a tool. The error is the protocol's: there is no such tool, the
// call was refused, or the host failed.
func (c *Client) Call(ctx context.Context, tool string, arguments json.RawMessage) (*Reply, error) {
	p := &mcp.CallToolParams{Name: tool}
	if len(arguments) > 0 {
		p.Arguments = arguments
	}
	res, err := c.session.CallTool(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &Reply{IsError: res.IsError}
	var lines []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, t.Text)
		}
	}
	r.Text = strings.Join(lines, "\n")
	var call callMeta
	if err := fromMeta(res.Meta, metaCall, &call); err != nil {
		return nil, err
	}
	r.CallID, r.Committed, r.Effects = call.ID, call.Committed, call.Effects
	if err := fromMeta(res.Meta, metaViolation, &r.Violation); err != nil {
		return nil, err
	}
	return r, nil
}

// fromMeta reads one key of _meta into v, which stays as it is where the key is
// not there.
func fromMeta(m mcp.Meta, key string, v any) error {
	raw, ok := m[key]
	if !ok {
		return nil
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
