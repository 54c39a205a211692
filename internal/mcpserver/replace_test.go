package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

var readOnly = capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}

// answering returns a package whose tools answer with a text.
func answering(name, text string, tools ...*runtime.Tool) *fakePackage {
	p := &fakePackage{name: name, own: name, tools: tools}
	p.call = func(context.Context, runtime.Request) *runtime.Result {
		return &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: textOutput(text)}
	}
	return p
}

// watcher is a client that counts what it is told of changes.
type watcher struct {
	*mcp.ClientSession

	told chan struct{}
}

// watch connects over HTTP where that has a way to tell of changes, which is
// 2026-07-28, else over a pipe.
func watch(t *testing.T, s *mcpserver.Server, version string) *watcher {
	t.Helper()
	w := &watcher{told: make(chan struct{}, 100)}
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { w.told <- struct{}{} },
	})
	var transport mcp.Transport
	if version == modern {
		transport = &mcp.StreamableClientTransport{Endpoint: serveHTTP(t, s, mcpserver.HTTPOptions{}).URL}
	} else {
		transport = pipe(t, s)
	}
	session, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	w.ClientSession = session
	t.Cleanup(func() { session.Close() })
	return w
}

func (w *watcher) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.told:
	case <-time.After(20 * time.Second):
		t.Fatal("client is not told of a change")
	}
}

// hints returns the read-only hints in the order of the list.
func (w *watcher) hints(t *testing.T) (names []string, readOnly []bool) {
	t.Helper()
	list, err := w.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names, readOnly = append(names, tool.Name), append(readOnly, tool.Annotations.ReadOnlyHint)
	}
	return names, readOnly
}

// A client is told once of a change of many tools, sees all of it then, and is
// told also where one hint alone has changed.
func TestReplaceAnnounces(t *testing.T) {
	many := func(c capabilities.Claim) []*runtime.Tool {
		var ts []*runtime.Tool
		for i := range 30 {
			ts = append(ts, newTool(fmt.Sprintf("t%02d", i), c))
		}
		return ts
	}
	for _, version := range versions {
		old := answering("p", "old", newTool("a", readOnly), newTool("gone", readOnly))
		s := newServer(t, old)
		w := watch(t, s, version)
		w.subscribed(t, s, old)
		for _, next := range []*fakePackage{
			answering("p", "new", append(many(readOnly), newTool("a", readOnly))...),
			answering("p", "new", append(many(readOnly), newTool("a", capabilities.Claim{}))...),
			answering("p", "new", append(many(capabilities.Claim{}), newTool("a", capabilities.Claim{}))...),
		} {
			if err := s.Replace([]mcpserver.Package{next}); err != nil {
				t.Fatal(err)
			}
			w.wait(t)
			names, hints := w.hints(t)
			if len(names) != 31 || hints[0] != next.tools[30].Listed.ReadOnly || hints[30] != next.tools[0].Listed.ReadOnly {
				t.Errorf("%s: after the change: %v, %v", version, names, hints)
			}
			time.Sleep(50 * time.Millisecond) // a second announcement would have to come by now
			if len(w.told) != 0 {
				t.Errorf("%s: told %d times more", version, len(w.told))
			}
		}
	}
}

// subscribed waits until the client can be told of changes, which it asks for on
// its own time: it changes the list until the client hears of it.
func (w *watcher) subscribed(t *testing.T, s *mcpserver.Server, p mcpserver.Package) {
	t.Helper()
	probe := answering("probe", "", newTool("probe", readOnly))
	deadline := time.After(20 * time.Second)
	for told := false; !told; {
		for _, ps := range [][]mcpserver.Package{{p, probe}, {p}} {
			if err := s.Replace(ps); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-w.told:
			told = true
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatal("client is not told of any change")
		}
	}
	time.Sleep(50 * time.Millisecond)
	for len(w.told) > 0 {
		<-w.told
	}
}

// What lists the same is left alone: nobody is told, and calls go to the new
// package.
func TestReplaceUnchanged(t *testing.T) {
	old := answering("p", "old", newTool("a", readOnly))
	s := newServer(t, old)
	w := watch(t, s, legacy)
	w.subscribed(t, s, old)
	if err := s.Replace([]mcpserver.Package{answering("p", "new", newTool("a", readOnly))}); err != nil {
		t.Fatal(err)
	}
	res, err := w.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "new" {
		t.Errorf("call: %+v, %v", res, err)
	}
	time.Sleep(50 * time.Millisecond)
	if len(w.told) != 0 {
		t.Error("told of a change that is none")
	}
}

// An error of any tool leaves all as it was.
func TestReplaceIsAtomic(t *testing.T) {
	bad := newTool("z", readOnly)
	bad.Definition.InputSchema = json.RawMessage(`[]`)
	s := newServer(t, answering("p", "old", newTool("a", readOnly), newTool("b", readOnly)))
	w := watch(t, s, legacy)
	for name, ps := range map[string][]mcpserver.Package{
		"schema":    {answering("p", "new", newTool("a", capabilities.Claim{}), bad)},
		"collision": {answering("p", "new", newTool("a", capabilities.Claim{})), answering("q", "new", newTool("A", readOnly))},
		"name":      {answering("p", "new", newTool("b", capabilities.Claim{}), newTool("no good", readOnly))},
	} {
		if err := s.Replace(ps); err == nil {
			t.Errorf("%s: no error", name)
		}
		if names, hints := w.hints(t); !slices.Equal(names, []string{"a", "b"}) || !hints[0] || !hints[1] {
			t.Errorf("%s: list: %v, %v", name, names, hints)
		}
		res, err := w.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
		if err != nil || res.Content[0].(*mcp.TextContent).Text != "old" {
			t.Errorf("%s: call: %+v, %v", name, res, err)
		}
	}
}

// A call that finds its package closed goes to the one that serves the tool by
// then; where there is none, it is refused.
func TestReplaceDuringCall(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		old := answering("p", "", newTool("a", readOnly))
		s := newServer(t, old)
		calls := 0
		old.call = func(context.Context, runtime.Request) *runtime.Result {
			calls++
			if replaced {
				if err := s.Replace([]mcpserver.Package{answering("p", "new", newTool("a", readOnly))}); err != nil {
					t.Error(err)
				}
			}
			return &runtime.Result{CallID: "c", Outcome: runtime.Refused, Err: runtime.ErrClosed, Output: textOutput("closed")}
		}
		r, err := connect(t, s, "").Call(t.Context(), "a", nil)
		if replaced && (err != nil || r.Text != "new") || !replaced && err == nil || calls != 1 {
			t.Errorf("replaced: %t: %+v, %v, %d calls", replaced, r, err, calls)
		}
	}
}

// A client that lists and calls while tools are replaced sees one set or the
// other, and a tool that is in both is always there. Run with -race.
func TestReplaceWhileServing(t *testing.T) {
	sets := [2][]string{{"a", "b", "c", "d"}, {"a", "x", "y"}}
	pkgs := [2]*fakePackage{}
	for i, names := range sets {
		for _, n := range names {
			pkgs[i] = answering("p", "done", append(toolsOf(pkgs[i]), newTool(n, capabilities.Claim{ReadOnly: map[bool]capabilities.Tri{true: capabilities.True, false: capabilities.False}[i == 0]}))...)
		}
	}
	s := newServer(t, pkgs[0])
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, version := range versions {
		w := watch(t, s, version)
		go func() {
			for range w.told { //nolint:revive // drains
			}
		}()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if names, _ := w.hints(t); !slices.Equal(names, sets[0]) && !slices.Equal(names, sets[1]) {
					t.Errorf("list: %v", names)
				}
				if _, err := w.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"}); err != nil {
					t.Errorf("call: %v", err)
				}
			}
		})
	}
	for i := range 40 {
		if err := s.Replace([]mcpserver.Package{pkgs[(i+1)%2]}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
}

func toolsOf(p *fakePackage) []*runtime.Tool {
	if p == nil {
		return nil
	}
	return p.tools
}

func TestNamesAsServed(t *testing.T) {
	notes := answering("work", "", newTool("list", readOnly), newTool("add", readOnly))
	notes.own = "notes"
	s := newServer(t, notes, answering("shop", "", newTool("list", readOnly)))
	want := map[string]map[string]string{"work": {"list": "work_list", "add": "add"}, "shop": {"list": "list"}}
	if got := s.Names(); !maps.EqualFunc(got, want, maps.Equal) {
		t.Errorf("%v", got)
	}
	if err := s.Replace(nil); err != nil || len(s.Names()) != 0 {
		t.Errorf("%v, %v", s.Names(), err)
	}
}

func TestCollisionError(t *testing.T) {
	_, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{
		answering("p", "", newTool("list", readOnly)), answering("q", "", newTool("LIST", readOnly)),
	}})
	var c *mcpserver.CollisionError
	if !errors.As(err, &c) || c.Tool != "list" || c.Packages != [2]string{"p", "q"} {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"list", "p", "q", "`as:`", "configuration"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q names no %q", err, part)
		}
	}
}
