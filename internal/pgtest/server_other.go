//go:build !unix

// Package pgtest runs a real PostgreSQL for a test, where there are Unix sockets
// and users.
package pgtest

import (
	"io"
	"testing"
)

// Server has no values outside of Unix: [Start] skips, and what it returns is
// never used.
type Server struct{}

// Start skips the test.
func Start(t testing.TB, _ string) *Server {
	t.Helper()
	t.Skip("a server is only run where there are Unix sockets and users")
	return nil
}

const never = "pgtest: no server outside of Unix"

func (*Server) URL() string { panic(never) }

func (*Server) Socket() string { panic(never) }

func (*Server) Password() string { panic(never) }

func (*Server) Run(io.Reader, string, ...string) []byte { panic(never) }

func (*Server) Kill() { panic(never) }

func (*Server) Stop() { panic(never) }

func (*Server) Restart() { panic(never) }
