package mcpserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// A call that is repeated under its key is done once and answered alike, whichever
// way the key comes.
func TestKeyIsDoneOnce(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		argument := map[string]any{"file": "b", "text": "x", "request": "r1"}
		for file, again := range map[string]func() *answered{
			"a": func() *answered { return u.call("add", put("a", "x"), "k1") },
			"b": func() *answered { return u.call("add", argument, nil) },
		} {
			first, second := again(), again()
			if first.isError || first.call.Remembered || !first.call.Committed || len(first.call.Effects) == 0 {
				t.Errorf("%s: first: %+v", file, first)
			}
			if second.text != first.text || second.call.ID != first.call.ID || !second.call.Remembered || !second.call.Committed ||
				!slices.Equal(second.call.Effects, first.call.Effects) {
				t.Errorf("%s: first %+v, second %+v", file, first, second)
			}
			if got := u.read(file); got != "x\n" {
				t.Errorf("%s: %q", file, got)
			}
		}
	})
}

func TestConcurrentDuplicatesAreDoneOnce(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		var mu sync.Mutex
		ids := map[string]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a, err := u.try("add", put("a", "x"), "k")
				if err != nil || a.isError || a.text != "Lines: 1" {
					t.Errorf("%+v, %v", a, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[a.call.ID]++
			})
		}
		wg.Wait()
		if len(ids) != 1 || u.read("a") != "x\n" {
			t.Errorf("calls %v, file %q", ids, u.read("a"))
		}
	})
}

// Other arguments under a key are the model's to mend; a key that is none is the
// program's. Keys are apart by principal and tool.
func TestKeyOfAnotherCall(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		u.call("add", put("a", "x"), "k")
		a := u.call("add", put("a", "y"), "k")
		if !a.isError || a.call.Committed || !strings.Contains(a.text, "give a call with other arguments a key of its own") {
			t.Errorf("%+v", a)
		}
		if a := u.call("add_once", put("c", "y"), "k"); a.call.Remembered {
			t.Errorf("another tool: %+v", a)
		}
		other := d.user(t, d.url, modern, "other-"+strings.ToLower(fmt.Sprintf("%p", t)))
		if a := other.call("add", put("a", "y"), "k"); a.isError || a.text != "Lines: 1" {
			t.Errorf("another principal: %+v", a)
		}
		for _, key := range []any{7, "", strings.Repeat("k", 256)} {
			_, err := u.try("add", put("a", "z"), key)
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, metaKey) {
				t.Errorf("key %v: %v", key, err)
			}
		}
		if got := u.read("a"); got != "x\n" {
			t.Errorf("%q", got)
		}
	})
}

// What saved nothing is not remembered: a violation, an error of the tool.
func TestFailuresAreNotRemembered(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		u.does("put", put("a", "old"))
		first := u.call("fill", put("a", "new"), "k")
		if !first.isError || first.violation == nil || first.violation.Hint != "destructiveHint" || first.violation.Phase != "commit" {
			t.Fatalf("%+v", first)
		}
		// The line is gone, so that the same call loses nothing.
		u.does(mcpserver.ToolUndo, map[string]any{"callId": u.does("put", put("b", "x")).call.ID})
		u.does("put", put("a", "new"))
		second := u.call("fill", put("a", "new"), "k")
		if second.isError || second.call.Remembered || second.call.ID == first.call.ID {
			t.Errorf("%+v", second)
		}
		for range 2 {
			if a := u.call("fail", put("c", "x"), "k"); !a.isError || a.call.Remembered || a.call.Committed {
				t.Errorf("%+v", a)
			}
		}
	})
}

// A violation's text says what was lost and how it could be allowed, and nothing
// that a guest made.
func TestViolationSaysHowToAllowIt(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		u.does("put", put("secret.of.guest", "old"))
		a := u.call("fill", put("secret.of.guest", "new"), nil)
		for _, want := range []string{"destructiveHint: false", "Line 1 was removed, changed or moved.", "recoverable 720h0m0s", "sandboxd approve"} {
			if !strings.Contains(a.text, want) {
				t.Errorf("no %q in %q", want, a.text)
			}
		}
		if strings.Contains(a.text, "secret") || a.violation.Object != "/data/secret.of.guest" || a.violation.Detail == "" {
			t.Errorf("%q, %+v", a.text, a.violation)
		}
	})
}

// Two who write the same file at once both succeed, and nothing is lost.
func TestConcurrentWritersBothSucceed(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if a, err := u.try("add", put("a", fmt.Sprint(i)), nil); err != nil || a.isError {
					t.Errorf("%d: %+v, %v", i, a, err)
				}
			})
		}
		wg.Wait()
		lines := strings.Fields(u.read("a"))
		slices.Sort(lines)
		if !slices.Equal(lines, []string{"0", "1", "2"}) {
			t.Errorf("%q", lines)
		}
	})
}

// What breaks idempotentHint is seen when the call is run a second time.
func TestReplayOverMCP(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	inBothEras(t, d, func(t *testing.T, u *user) {
		a := u.call("add_once", put("a", "x"), nil)
		if !a.isError || a.violation == nil || a.violation.Hint != "idempotentHint" || a.violation.Phase != "replay" || a.call.Committed {
			t.Errorf("%+v", a)
		}
		if a, _ := u.try("read", map[string]any{"file": "a"}, nil); a != nil && !a.isError {
			t.Errorf("it left %q", a.text)
		}
	})
}

// The list says what is enforced: a claim that is held against some calls only is
// none, nor is any in report mode; relaxations are those in force.
func TestListingOfPolicies(t *testing.T) {
	hints := func(u *user, name string) (listed string, enforcement map[string]any) {
		list, err := u.session.ListTools(u.t.Context(), nil)
		if err != nil {
			u.t.Fatal(err)
		}
		for _, tl := range list.Tools {
			if tl.Name == name {
				enforcement, _ = tl.Meta[runtime.MetaPrefix+"enforcement"].(map[string]any)
				return fmt.Sprintf("R%t D%t I%t", tl.Annotations.ReadOnlyHint, *tl.Annotations.DestructiveHint, tl.Annotations.IdempotentHint), enforcement
			}
		}
		u.t.Fatalf("no tool %s", name)
		return "", nil
	}
	for name, c := range map[string]struct {
		binding     runtime.Binding
		want        string
		relaxations string
		replay      any
	}{
		"strict":  {runtime.Binding{}, "Rfalse Dfalse Itrue", `[]`, "always"},
		"sampled": {runtime.Binding{Replay: map[string]runtime.ReplayPolicy{"default": runtime.ReplaySample}}, "Rfalse Dfalse Ifalse", `[]`, "sample"},
		"off":     {runtime.Binding{Replay: map[string]runtime.ReplayPolicy{"add_once": runtime.ReplayOff}}, "Rfalse Dfalse Ifalse", `[]`, "off"},
		"report":  {runtime.Binding{Mode: capabilities.Report}, "Rfalse Dtrue Ifalse", `[]`, "always"},
		"relaxed": {
			runtime.Binding{Relaxations: tool.Relaxations{Volatile: []string{"/data/state.json#/seen"}}, AppendOnly: []string{"*.db"}},
			"Rfalse Dfalse Itrue", `["volatile /data/state.json#/seen","append-only *.db"]`, "always",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.binding)
			for _, version := range versions {
				u := d.user(t, d.url, version, "ada")
				got, e := hints(u, "add_once")
				relaxations, _ := json.Marshal(e["relaxations"])
				policy, _ := e["policy"].(map[string]any)
				if got != c.want || string(relaxations) != c.relaxations || policy["replay"] != c.replay {
					t.Errorf("%s: %s, %s, %v", version, got, relaxations, policy)
				}
				if got, _ := hints(u, mcpserver.ToolUndo); got != "Rfalse Dtrue Itrue" {
					t.Errorf("undo: %s", got)
				}
				for _, name := range []string{mcpserver.ToolPreview, mcpserver.ToolChanges} {
					if got, _ := hints(u, name); got != "Rtrue Dfalse Itrue" {
						t.Errorf("%s: %s", name, got)
					}
				}
			}
		})
	}
}
