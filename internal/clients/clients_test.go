package clients

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var installed = flag.String("clients", "", "the folder that install.sh filled; empty: only the Go SDK's client runs")

// workshop is the folder of what all tests share.
var workshop string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	workshop = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var built = sync.OnceValues(func() (*Program, error) { return Build(workshop) })

// sandboxd returns the program under test.
func sandboxd(t *testing.T) *Program {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the program under test is another process, which the race detector does not see")
	}
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// clientKinds returns every kind of client that is there.
func clientKinds(t *testing.T) []client {
	kinds := []client{goSDK("2025-11-25"), goSDK("2026-07-28")}
	if *installed == "" {
		t.Log("only the Go SDK's client: for the others, run install.sh and give its folder with -clients")
		return kinds
	}
	return append(kinds, drivenClients(*installed)...)
}

// each runs a test with each kind of client over each transport.
func each(t *testing.T, test func(t *testing.T, s server)) {
	eachOver(t, []string{"stdio", "http"}, test)
}

func eachOver(t *testing.T, transports []string, test func(t *testing.T, s server)) {
	program := sandboxd(t)
	pages := program.Package(t, "guest")
	for _, c := range clientKinds(t) {
		for _, transport := range transports {
			t.Run(strings.Join([]string{c.name, c.protocol, transport}, "/"), func(t *testing.T) {
				test(t, server{program: program, client: c, transport: transport, pages: pages, folder: t.TempDir()})
			})
		}
	}
}

// server is what one client meets.
type server struct {
	program   *Program
	client    client
	transport string
	pages     string // folder of the package
	folder    string // its volume
}

// start starts `sandboxd serve`, with the package pages where there are no
// arguments. It returns a client of it, and its state folder.
func (s server) start(t *testing.T, log string, args ...string) (session, string) {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--volume", "pages/data=" + s.folder, s.pages}
	}
	to, state := target{Log: log}, ""
	if s.transport == "http" {
		d := s.program.Serve(t, args...)
		to.URL, state = d.URL, d.State
	} else {
		state = t.TempDir()
		to.Command = s.program.Command(state, append([]string{"serve", "--stdio"}, args...)...)
	}
	c := s.client.open(t, to)
	if c.Protocol() != s.client.protocol {
		t.Errorf("protocol = %s, want %s", c.Protocol(), s.client.protocol)
	}
	return c, state
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// checkListed holds what the client sees of the tools against what is enforced.
func checkListed(ctx context.Context, t *testing.T, c session) {
	t.Helper()
	tools, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(tools, func(a, b listed) int { return cmp.Compare(a.Name, b.Name) })
	var got []string
	for _, l := range tools {
		got = append(got, l.String())
		if l.Meta.Enforcement == nil || l.Meta.Enforcement.Mode != "enforce" {
			t.Errorf("%s: enforcement = %+v", l.Name, l.Meta.Enforcement)
		}
	}
	want := []string{
		// readOnly, destructive, idempotent, openWorld
		"erase_page false true true false",
		"peek_page true false true false",
		"read_page true false true false",
		"slow_page false true false false",
		"write_page false true true false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("tools:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestCalls lists the tools, and makes the calls that end in each way that a
// client can see.
func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		c, _ := s.start(t, "")
		defer closed(t, c)
		ctx, page := deadline(t), filepath.Join(s.folder, "a")

		checkListed(ctx, t, c)

		r := must(t)(c.Call(ctx, call{Tool: "write_page", Arguments: map[string]any{"name": "a", "text": "hello"}}))
		if r.Result.IsError || r.Result.text() != "Wrote a." || !r.Result.Meta.Call.Committed || r.Result.Meta.Call.ID == "" {
			t.Errorf("write_page: %+v", r)
		}
		if b, err := os.ReadFile(page); string(b) != "hello" {
			t.Errorf("page after write_page: %q, %v", b, err)
		}

		r = must(t)(c.Call(ctx, call{Tool: "peek_page", Arguments: map[string]any{"name": "a"}}))
		v := r.Result.Meta.Violation
		if !r.Result.IsError || r.Result.Meta.Call.Committed || v == nil || v.Hint != "readOnlyHint" || v.Operation != "unlink" || v.Object != "/data/a" {
			t.Errorf("peek_page: %+v, violation %+v", r, v)
		}
		if _, err := os.Stat(page); err != nil {
			t.Errorf("page after a violation: %v", err)
		}

		r = must(t)(c.Call(ctx, call{Tool: "read_page", Arguments: map[string]any{"name": "b"}}))
		if !r.Result.IsError || r.Result.Meta.Violation != nil {
			t.Errorf("read_page of a page that is not there: %+v", r)
		}

		r = must(t)(c.Call(ctx, call{Tool: "read_page", Arguments: map[string]any{"nome": "a"}}))
		if !r.Result.IsError || !strings.Contains(r.Result.text(), "name") {
			t.Errorf("read_page with wrong arguments: %+v", r)
		}

		_, err := c.Call(ctx, call{Tool: "burn_page", Arguments: map[string]any{}})
		if e, ok := errors.AsType[*protocolError](err); !ok || e.Code != -32602 {
			t.Errorf("unknown tool: %v", err)
		}

		// Without a session a server cannot know whether a client of 2025-11-25 has
		// asked for the log; that version lets it send then.
		unasked := s.transport == "http" && s.client.protocol < "2026-07-28"
		if r = must(t)(c.Call(ctx, slow)); r.Result.IsError || len(r.Log) != 0 && !unasked {
			t.Errorf("slow_page, when nobody asked for its log: %+v", r)
		}
	})
}

// TestCancelled cancels a call that is running: it ends, and nothing of it is
// kept.
func TestCancelled(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		c, state := s.start(t, "")
		defer closed(t, c)
		ctx := deadline(t)
		// 900 steps take longer than it takes to cancel, and end before the time limit
		// does: a call that was not cancelled ends well.
		r := must(t)(c.Call(ctx, call{
			Tool: "slow_page", Arguments: map[string]any{"name": "a", "text": "hello", "steps": 900}, Cancel: true,
		}))
		if !r.Cancelled {
			t.Fatalf("not cancelled: %+v", r)
		}
		record := s.program.Ended(t, state, "slow_page", 1)[0]
		if record.Outcome == "ok" || record.Committed {
			t.Errorf("cancelled call in the log: %+v", record)
		}
		if _, err := os.Stat(filepath.Join(s.folder, "a")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("page of a cancelled call: %v", err)
		}
		// The session goes on.
		r = must(t)(c.Call(ctx, call{Tool: "write_page", Arguments: map[string]any{"name": "b", "text": "hello"}}))
		if r.Result.IsError {
			t.Errorf("write_page after a cancelled call: %+v", r)
		}
	})
}

// slow is a call that reports its progress and writes to the client's log.
var slow = call{Tool: "slow_page", Arguments: map[string]any{"name": "a", "text": "hello", "steps": 3}}

// TestNotes has a tool report its progress, and write to the log of a client that
// asked for it.
func TestNotes(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		c, _ := s.start(t, "info")
		defer closed(t, c)
		noted := slow
		noted.Notes = 4
		r := must(t)(c.Call(deadline(t), noted))
		if r.Result.IsError || !slices.Equal(r.Progress, []float64{1, 2, 3}) {
			t.Errorf("progress %v, %+v", r.Progress, r)
		}
		if !slices.Equal(r.Log, []string{"writing a"}) {
			t.Errorf("log %q", r.Log)
		}
	})
}

// TestListChanged adds a package to the configuration while a client is
// connected.
func TestListChanged(t *testing.T) {
	notes := sandboxd(t).Package(t, filepath.Join("..", "..", "guests", "notes"))
	each(t, func(t *testing.T, s server) {
		file := filepath.Join(t.TempDir(), "sandboxd.yaml")
		configure(t, file, s.pages)
		c, _ := s.start(t, "", "--config", file)
		defer closed(t, c)
		ctx := deadline(t)
		if names := toolNames(ctx, t, c); slices.Contains(names, "add_note") {
			t.Fatalf("tools before: %q", names)
		}
		configure(t, file, s.pages, notes)
		s.changed(ctx, t, c)
		if names := toolNames(ctx, t, c); !slices.Contains(names, "add_note") || !slices.Contains(names, "read_page") {
			t.Errorf("tools after: %q", names)
		}
	})
}

// changed waits until the client was told that the tools changed. A client of
// 2025-11-25 over HTTP has no session in which it could be told: it asks.
func (s server) changed(ctx context.Context, t *testing.T, c session) {
	t.Helper()
	if s.transport == "http" && s.client.protocol < "2026-07-28" {
		for before := len(toolNames(ctx, t, c)); len(toolNames(ctx, t, c)) == before; {
			if ctx.Err() != nil {
				t.Fatal("tools: unchanged")
			}
		}
		return
	}
	if err := c.Changed(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestPrincipals serves two principals, each with pages of its own. A client on
// standard input and output is who started the process.
func TestPrincipals(t *testing.T) {
	eachOver(t, []string{"http"}, func(t *testing.T, s server) {
		file := filepath.Join(t.TempDir(), "sandboxd.yaml")
		tokens := map[string]string{"alice": newToken(t), "bob": newToken(t)}
		configureFor(t, file, tokens, s.pages)
		d := s.program.Serve(t, "--config", file)
		ctx := deadline(t)
		for _, name := range []string{"alice", "bob"} {
			c := s.client.open(t, target{URL: d.URL, Token: tokens[name]})
			must(t)(c.Call(ctx, call{Tool: "write_page", Arguments: map[string]any{"name": "mine", "text": name}}))
			r := must(t)(c.Call(ctx, call{Tool: "read_page", Arguments: map[string]any{"name": "mine"}}))
			if r.Result.text() != name {
				t.Errorf("%s reads %q", name, r.Result.text())
			}
			closed(t, c)
		}
		for i, r := range s.program.Ended(t, d.State, "write_page", 2) {
			if want := []string{"alice", "bob"}[i]; r.Principal != want {
				t.Errorf("call %d is of %q, want %q", i, r.Principal, want)
			}
		}
	})
}

func toolNames(ctx context.Context, t *testing.T, c session) []string {
	t.Helper()
	tools, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range tools {
		names = append(names, l.Name)
	}
	return names
}

func must(t *testing.T) func(r *reply, err error) *reply {
	return func(r *reply, err error) *reply {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func closed(t *testing.T, c session) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
