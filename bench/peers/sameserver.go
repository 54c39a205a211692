package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/bench/peers/report"
)

// sameServer compares echo in the sandbox with echo as a Go function, in one
// server of sandboxd's over HTTP.
func (l *lab) sameServer(ctx context.Context) (out []*report.Table, err error) {
	n := len(l.closers)
	defer func() {
		if end := l.closeTo(n); err == nil {
			err = end
		}
	}()
	kinds := []struct {
		row, path string
		ship      func(context.Context) (string, error)
		err       error
	}{
		{report.HTTPNative, "native", nil, nil},
		{report.HTTPC, "c", l.shipped(cReactor), nil},
		{report.HTTPGo, "go", l.shipped(filesReactor), nil},
	}
	bin, err := l.goBuild(ctx, l.source(), "./mixed", "mixed", nil)
	if err != nil {
		return nil, err
	}
	command := []string{bin, "-cache", l.path("cache"), "-folder", l.path("data")}
	for i, k := range kinds {
		if k.ship == nil {
			continue
		}
		dir, err := k.ship(ctx)
		if err != nil {
			kinds[i].err = err
			continue
		}
		command = append(command, k.path+"="+dir)
	}
	spec := serverSpec{row: report.HTTPNative, command: command, http: true, ready: listening, path: "/native", echoKey: "text"}
	first, err := l.start(ctx, spec, report.Protocol)
	if err != nil {
		return nil, err
	}
	l.onClose(first.close)
	r := &rows{}
	for _, k := range kinds {
		s := first
		if k.ship != nil && k.err == nil {
			if s, err = l.beside(ctx, first, "/"+k.path); err != nil {
				return nil, err
			}
		}
		if err := r.add(k.row, s.subject(echoOperation), k.err); err != nil {
			return nil, err
		}
	}
	for _, callers := range l.callers(1, 16) {
		l.say("one server, HTTP, echo, %d callers: %d tools", callers, len(r.subjects))
		t, err := r.table(ctx, l.options(callers))
		if err != nil {
			return nil, err
		}
		t.ID, t.Title = report.SameServerTable(callers), fmt.Sprintf("In one server: echo over HTTP, callers: %d", callers)
		t.Base, t.Client = report.HTTPNative, true
		t.Conditions = "One process with sandboxd's MCP server, GOGC 400, go-sdk's client, protocol version " + report.Protocol + ". The native tool is judged as the others are; what differs is the sandbox."
		out = append(out, t)
	}
	return out, nil
}

// beside connects a client of its own to another path of a server.
func (l *lab) beside(ctx context.Context, s *server, path string) (*server, error) {
	transport := &mcp.StreamableClientTransport{
		Endpoint: s.origin + path, DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxIdleConns: 64}},
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: report.Protocol})
	if err != nil {
		return nil, err
	}
	l.onClose(session.Close)
	return &server{spec: s.spec, session: session, command: s.command}, nil
}
