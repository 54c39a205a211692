package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandboxd/sandboxd/bench/peers/report"
)

// listening is how our own servers say where they listen.
var listening = regexp.MustCompile(`^listening: MCP at (http://[^\s,]+)`)

// guestRoot is where guests see their volume.
const guestRoot = "/data"

// sandboxdSpec returns sandboxd serving one package, with one folder for its
// volume.
func (l *lab) sandboxdSpec(ctx context.Context, row, dir, folder string, overHTTP bool) (serverSpec, error) {
	bin, err := l.sandboxd(ctx)
	if err != nil {
		return serverSpec{}, err
	}
	s := serverSpec{row: row, http: overHTTP, ready: listening, root: guestRoot, echoKey: "text"}
	s.command = append([]string{bin}, l.state("serve-"+strings.NewReplacer(" ", "-", ",", "").Replace(row)+"-"+filepath.Base(dir))...)
	s.command = append(s.command, "serve", dir)
	if folder != "" {
		s.command = append(s.command, "--volume", "data="+folder)
	}
	if overHTTP {
		s.command, s.health = append(s.command, "--http", "127.0.0.1:0"), "/readyz"
	} else {
		s.command = append(s.command, "--stdio")
	}
	return s, nil
}

// stockSpec returns the server that one writes with the SDK alone.
func (l *lab) stockSpec(ctx context.Context, row, folder string, overHTTP bool, env ...string) (serverSpec, error) {
	bin, err := l.goBuild(ctx, l.source(), "./stock", "stock", nil)
	if err != nil {
		return serverSpec{}, err
	}
	s := serverSpec{row: row, http: overHTTP, ready: listening, root: folder, echoKey: "text", env: env}
	s.command = []string{bin, "-root", folder}
	if overHTTP {
		s.command = append(s.command, "-http", "127.0.0.1:0")
	}
	return s, nil
}

// nodeSpec returns one of the reference servers over stdio.
func (l *lab) nodeSpec(ctx context.Context, row, name string, env []string, args ...string) (serverSpec, error) {
	node, modules, err := l.node(ctx)
	if err != nil {
		return serverSpec{}, err
	}
	script := filepath.Join(modules, npmScope, name, "dist", "index.js")
	return serverSpec{row: row, command: append([]string{node, script}, args...), env: env, echoKey: "message"}, nil
}

// filesSpecs returns the servers of the file tools, which work on one folder.
func (l *lab) filesSpecs(ctx context.Context, folder string) ([]started, error) {
	reactor, noReactor := l.ship(ctx, filesReactor)
	command, noCommand := l.ship(ctx, filesCommand)
	specs := []started{
		l.planned(report.SandboxdStdio, noReactor, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdStdio, reactor, folder, false)
		}),
		l.planned(report.SandboxdHTTP, noReactor, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdHTTP, reactor, folder, true)
		}),
		l.planned(report.SandboxdCommand, noCommand, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdCommand, command, folder, false)
		}),
		l.planned(report.StockStdio, nil, func() (serverSpec, error) {
			return l.stockSpec(ctx, report.StockStdio, folder, false)
		}),
		l.planned(report.StockStdio400, nil, func() (serverSpec, error) {
			return l.stockSpec(ctx, report.StockStdio400, folder, false, "GOGC=400")
		}),
		l.planned(report.StockHTTP, nil, func() (serverSpec, error) {
			return l.stockSpec(ctx, report.StockHTTP, folder, true)
		}),
	}
	return specs, nil
}

// started is a server that is to be started, or why it is not.
type started struct {
	row  string
	spec serverSpec
	err  error
}

func (l *lab) planned(row string, missing error, spec func() (serverSpec, error)) started {
	if missing != nil {
		return started{row: row, err: missing}
	}
	s, err := spec()
	return started{row, s, err}
}

// nodeFiles is server-filesystem.
func (l *lab) nodeFiles(ctx context.Context, folder string) started {
	return l.planned(report.NodeStdio, nil, func() (serverSpec, error) {
		s, err := l.nodeSpec(ctx, report.NodeStdio, "server-filesystem", nil, folder)
		s.root = folder
		return s, err
	})
}

// echoSpecs returns the servers of echo besides those of the files.
func (l *lab) echoSpecs(ctx context.Context) ([]started, error) {
	c, noC := l.ship(ctx, cReactor)
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return []started{
		l.planned(report.SandboxdCStdio, noC, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdCStdio, c, "", false)
		}),
		l.planned(report.SandboxdC100, noC, func() (serverSpec, error) {
			s, err := l.sandboxdSpec(ctx, report.SandboxdC100, c, "", true)
			s.env = []string{"GOGC=100"}
			return s, err
		}),
		l.planned(report.SandboxdCHTTP, noC, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdCHTTP, c, "", true)
		}),
		l.planned(report.NodeStdio, nil, func() (serverSpec, error) {
			return l.nodeSpec(ctx, report.NodeStdio, "server-everything", nil, "stdio")
		}),
		l.planned(report.NodeHTTP, nil, func() (serverSpec, error) {
			s, err := l.nodeSpec(ctx, report.NodeHTTP, "server-everything", []string{fmt.Sprint("PORT=", port)}, "streamableHttp")
			s.http, s.ready = true, regexp.MustCompile(`listening on port`)
			s.url = fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
			return s, err
		}),
	}, nil
}

// memorySpecs returns the servers of a knowledge graph, each with a copy.
func (l *lab) memorySpecs(ctx context.Context) ([]started, error) {
	dir, noGuest := l.ship(ctx, memoryGuest)
	copies := map[string]string{}
	for _, name := range []string{"stdio", "http", "node"} {
		folder := l.path("graph-" + name)
		if err := fillGraph(folder); err != nil {
			return nil, err
		}
		copies[name] = folder
	}
	return []started{
		l.planned(report.SandboxdStdio, noGuest, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdStdio, dir, copies["stdio"], false)
		}),
		l.planned(report.SandboxdHTTP, noGuest, func() (serverSpec, error) {
			return l.sandboxdSpec(ctx, report.SandboxdHTTP, dir, copies["http"], true)
		}),
		l.planned(report.NodeStdio, nil, func() (serverSpec, error) {
			return l.nodeSpec(ctx, report.NodeStdio, "server-memory", []string{"MEMORY_FILE_PATH=" + filepath.Join(copies["node"], "memory.jsonl")})
		}),
	}, nil
}

// freePort returns a port of this machine that nobody listens on now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
