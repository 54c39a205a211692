package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/bench/peers/report"
)

// operation is one tool call that servers are compared by.
type operation struct {
	tool      string
	arguments func(s *server, caller int) any
	done      func(s *server, caller int) // once a call was answered well; nil: nothing
	check     func(answer string) error
	note      string
}

// newProtocol is the version that costs the SDK more.
const newProtocol = "2026-07-28"

type object = map[string]any

func holds(parts ...string) func(string) error {
	return func(answer string) error {
		for _, p := range parts {
			if !strings.Contains(answer, p) {
				return fmt.Errorf("no %q in the answer %.200q", p, answer)
			}
		}
		return nil
	}
}

var echoOperation = operation{
	tool:      "echo",
	arguments: func(s *server, _ int) any { return object{s.spec.echoKey: hello} },
	check:     holds(hello),
	note:      "The reference server is server-everything.",
}

// fileOperations are those of server-filesystem.
var fileOperations = []operation{
	{
		tool:      "read_text_file",
		arguments: func(s *server, _ int) any { return object{"path": s.spec.root + "/" + fileName} },
		check:     holds(fileText),
		note:      "A file of 4 KB.",
	},
	{
		tool:      "list_directory",
		arguments: func(s *server, _ int) any { return object{"path": s.spec.root + "/flat"} },
		check:     holds("[FILE] file000.txt", "[FILE] file099.txt"),
		note:      "A folder of 100 files.",
	},
	{
		tool: "search_files",
		arguments: func(s *server, _ int) any {
			return object{"path": s.spec.root + "/tree", "pattern": "**/needle*.txt"}
		},
		check: holds("folder0/needle0.txt", "folder9/needle9.txt"),
		note:  "Ten files among 210, in ten folders.",
	},
	{
		tool: "edit_file",
		arguments: func(s *server, caller int) any {
			states := []string{"the first state", "the second state"}
			return object{
				"path":  fmt.Sprintf("%s/%s", s.spec.root, editName(s.spec.row, caller)),
				"edits": []object{{"oldText": states[s.edits[caller]%2], "newText": states[(s.edits[caller]+1)%2]}},
			}
		},
		done:  func(s *server, caller int) { s.edits[caller]++ },
		check: func(string) error { return nil },
		note:  "One line of 4 KB. sandboxd syncs the file to the disk before it answers, and keeps what undoing takes; the others do not.",
	},
}

// graphOperations are those of server-memory.
var graphOperations = []operation{
	{
		tool: "read_graph", arguments: func(*server, int) any { return object{} },
		check: holds("entity-000", "entity-099"),
		note:  "A graph of 100 entities.",
	},
	{
		tool: "search_nodes", arguments: func(*server, int) any { return object{"query": "entity-05"} },
		check: holds("entity-050", "entity-059"),
		note:  "Ten of 100 entities are found.",
	},
	{
		tool: "create_entities",
		arguments: func(*server, int) any {
			return object{"entities": []object{{"name": "entity-042", "entityType": "kind", "observations": []string{"observed"}}}}
		},
		check: func(string) error { return nil },
		note:  "An entity that is there already, so that the graph stays as it is.",
	},
}

// mcpTables compares servers with a real client.
func (l *lab) mcpTables(ctx context.Context) ([]*report.Table, error) {
	folder := l.path("data")
	files, err := l.filesSpecs(ctx, folder)
	if err != nil {
		return nil, err
	}
	echoes, err := l.echoSpecs(ctx)
	if err != nil {
		return nil, err
	}
	graphs, err := l.memorySpecs(ctx)
	if err != nil {
		return nil, err
	}
	callers := l.callers(1, 8)
	groups := []struct {
		specs      []started
		operations []operation
		protocol   string
		callers    []int
		base       string
	}{
		{append(append([]started{}, files...), echoes...), []operation{echoOperation}, report.Protocol, callers, report.StockStdio},
		{append(append([]started{}, files...), l.nodeFiles(ctx, folder)), fileOperations, report.Protocol, callers, report.StockStdio},
		{graphs, graphOperations, report.Protocol, callers, report.NodeStdio},
		{stateless(append(append([]started{}, files...), echoes...)), []operation{echoOperation}, newProtocol, []int{1}, report.StockStdio},
	}
	var out []*report.Table
	for _, g := range groups {
		tables, err := l.mcpGroup(ctx, g.specs, g.operations, g.protocol, g.base, g.callers)
		if err != nil {
			return nil, err
		}
		out = append(out, tables...)
	}
	return out, nil
}

// mcpGroup starts servers, and has them take turns in each operation.
func (l *lab) mcpGroup(ctx context.Context, specs []started, operations []operation, protocol, base string, callers []int) (out []*report.Table, err error) {
	n := len(l.closers)
	defer func() {
		if end := l.closeTo(n); err == nil {
			err = end
		}
	}()
	servers := make([]*server, len(specs))
	for i := range specs {
		if specs[i].err != nil {
			continue
		}
		servers[i], specs[i].err = l.start(ctx, specs[i].spec, protocol)
		if s := servers[i]; s != nil {
			l.onClose(s.close)
		}
	}
	for _, op := range operations {
		for _, c := range callers {
			r := &rows{}
			for i, s := range specs {
				if err := r.add(s.row, servers[i].subject(op), s.err); err != nil {
					return nil, err
				}
			}
			l.say("MCP %s, %s, %d callers: %d servers", protocol, op.tool, c, len(r.subjects))
			t, err := r.table(ctx, l.options(c))
			if err != nil {
				return nil, err
			}
			t.ID, t.Title = report.MCPTable(op.tool, protocol, c), fmt.Sprintf("MCP %s: %s, callers: %d", protocol, op.tool, c)
			t.Base, t.Client = base, true
			t.Conditions = "go-sdk's client, protocol version " + protocol + ". " + op.note + " CPU is that of the server and of what it started. GOGC: sandboxd 400, which is its default; the stock server 100, Go's default, unless its row says otherwise."
			out = append(out, t)
		}
	}
	return out, nil
}

// subject returns the subject of one operation.
func (s *server) subject(op operation) measure.Subject {
	if s == nil {
		return measure.Subject{}
	}
	return measure.Subject{CPU: s.cpu, Call: func(ctx context.Context, caller, _ int) error {
		answer, err := s.call(ctx, op.tool, op.arguments(s, caller))
		if err != nil {
			return err
		}
		if op.done != nil {
			op.done(s, caller)
		}
		return op.check(answer)
	}}
}

// stateless returns the servers as those of the new protocol have to be.
func stateless(specs []started) []started {
	out := make([]started, len(specs))
	for i, s := range specs {
		if s.row == report.StockHTTP && s.err == nil {
			s.spec.command = append(append([]string{}, s.spec.command...), "-stateless")
		}
		out[i] = s
	}
	return out
}
