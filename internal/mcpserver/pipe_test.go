package mcpserver_test

import (
	"context"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
)

// pipe returns the client's side of a server on a pair of streams, as a host
// starts one.
func pipe(t *testing.T, s *mcpserver.Server) mcp.Transport {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(ctx, serverIn, serverOut) }()
	t.Cleanup(func() {
		clientOut.Close()
		clientIn.Close()
		cancel()
		<-done
	})
	return &mcp.IOTransport{Reader: clientIn, Writer: clientOut}
}
