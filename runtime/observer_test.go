package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// tracing returns an observer that writes each event down.
func tracing(events *[]string) Observer {
	say := func(format string, args ...any) { *events = append(*events, fmt.Sprintf(format, args...)) }
	return Observer{
		CallStart: func(c CallInfo) { say("start %s of %s for %s", c.Tool, c.Package, c.Principal) },
		Violation: func(_ CallInfo, v capabilities.Violation) { say("violation %s", v.Operation) },
		Denial:    func(_ CallInfo, d capabilities.Denial) { say("denial %s", d.Operation) },
		CallEnd:   func(_ CallInfo, r *Result) { say("end %s", r.Outcome) },
		Conflict:  func(CallInfo) { say("conflict") },
		Commit:    func(_ CallInfo, took time.Duration) { say("commit %v", took > 0) },
		Acquired:  func(pkg string) { say("acquired %s", pkg) },
		Released:  func(pkg string) { say("released %s", pkg) },
	}
}

// readsAndWrites reads old, is denied a socket, and makes new.
func readsAndWrites() []byte {
	fdRead := w.Func{Import: wasiModule, Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}}
	m := w.Module{
		Funcs:  append(append([]w.Func{}, wasiImports...), fdRead),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte("old"), atText: []byte("new")},
	}
	m.Funcs = append(m.Funcs, w.Func{Name: "_start", Body: w.Seq(
		open("old", 0, rightRead),
		storeI32(atIovec, 4096), storeI32(atIovec+4, 100),
		w.I32Const(atFD), []byte{0x28, 2, 0}, w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(imports), w.Drop,
		w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop,
		storeI32(atPath, 'n'|'e'<<8|'w'<<16), open("new", oflagCreate, rightWrite),
	)})
	return m.Encode()
}

// TestEventsOfCalls: each event in its order, of a call that ends well, of one
// that lies, and of one that meets a conflict and is run again.
func TestEventsOfCalls(t *testing.T) {
	var events []string
	var disturb func()
	e := newEngine(t, Tee(tracing(&events), Observer{Denial: func(CallInfo, capabilities.Denial) { disturb() }}))
	honest, dir := load(t, e, pack(readsAndWrites(), tool.Command, capabilities.Claim{}))
	lying, _ := load(t, e, pack(writesAndSmiles(), tool.Command, readOnly))
	for _, c := range []struct {
		pkg     *Package
		request Request
		disturb func()
		want    string
	}{
		{honest, Request{Tool: "t"}, func() {}, "start t of p for local\nacquired p\ndenial socket\nreleased p\ncommit true\nend ok"},
		{lying, Request{Tool: "t", Principal: "alice"}, nil, "start t of p for alice\nacquired p\nviolation create\nreleased p\nend violation"},
		{honest, Request{Tool: "t", DryRun: true}, func() {}, "start t of p for local\nacquired p\ndenial socket\nreleased p\nend ok"},
		{honest, Request{Tool: "t"}, func() {
			if err := os.WriteFile(filepath.Join(dir, "old"), []byte("another content\n"), 0o644); err != nil {
				t.Error(err)
			}
		}, "start t of p for local\nacquired p\ndenial socket\nreleased p\ncommit true\nconflict\nacquired p\nreleased p\ncommit true\nend ok"},
		{honest, Request{Tool: "nobody"}, nil, "start nobody of p for local\nend refused"},
	} {
		events, disturb = nil, c.disturb
		if err := os.Remove(filepath.Join(dir, "new")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		r := c.pkg.Call(context.Background(), c.request)
		if got := strings.Join(events, "\n"); got != c.want {
			t.Errorf("events:\n%s\nwant:\n%s\n%v", got, c.want, r.Err)
		}
	}
}

// TestTraceReachesTheObserver as it was sent.
func TestTraceReachesTheObserver(t *testing.T) {
	sent := TraceContext{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "a=b"}
	var got TraceContext
	loaded, _ := load(t, newEngine(t, Observer{CallStart: func(c CallInfo) { got = c.Trace }}), pack(command("", "", nil), tool.Command, readOnly))
	loaded.Call(context.Background(), Request{Tool: "t", Trace: sent})
	if got != sent {
		t.Errorf("observed %+v", got)
	}
}

// TestObserversThatPanic end neither the process nor the record: a call that
// may not be on record is not committed, one that was committed is said to be.
func TestObserversThatPanic(t *testing.T) {
	boom := func() { panic("boom") }
	for name, c := range map[string]struct {
		observer  Observer
		claim     capabilities.Claim
		outcome   Outcome
		committed bool
	}{
		"CallStart": {Observer{CallStart: func(CallInfo) { boom() }}, capabilities.Claim{}, HostError, false},
		"Denial":    {Observer{Denial: func(CallInfo, capabilities.Denial) { boom() }}, capabilities.Claim{}, HostError, false},
		"Acquired":  {Observer{Acquired: func(string) { boom() }}, capabilities.Claim{}, HostError, false},
		"Released":  {Observer{Released: func(string) { boom() }}, capabilities.Claim{}, HostError, false},
		"Violation": {Observer{Violation: func(CallInfo, capabilities.Violation) { boom() }}, readOnly, Violation, false},
		"Commit":    {Observer{Commit: func(CallInfo, time.Duration) { boom() }}, capabilities.Claim{}, OK, true},
		"CallEnd":   {Observer{CallEnd: func(CallInfo, *Result) { boom() }}, capabilities.Claim{}, OK, true},
	} {
		loaded, dir := load(t, newEngine(t, c.observer), pack(readsAndWrites(), tool.Command, c.claim))
		r := loaded.Call(context.Background(), Request{Tool: "t"})
		if r.Outcome != c.outcome || r.Committed != c.committed || r.Partial || r.Err == nil || !strings.Contains(r.Err.Error(), "observer panicked: boom") {
			t.Errorf("%s: %s, committed %v, partial %v, %v", name, r.Outcome, r.Committed, r.Partial, r.Err)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); (err == nil) != c.committed {
			t.Errorf("%s: new is there: %v", name, err == nil)
		}
	}
	var load *LoadError
	_, err := newEngine(t, Observer{Compile: func(string, int) func() { boom(); return nil }}).
		Load(context.Background(), pack(command("", "", nil), tool.Command, readOnly), Binding{})
	if !errors.As(err, &load) {
		t.Errorf("Compile: %v", err)
	}
}

// TestTeeCallsEachInOrder, those without functions too.
func TestTeeCallsEachInOrder(t *testing.T) {
	var first, second []string
	o := Tee(tracing(&first), Observer{}, tracing(&second))
	o.CallStart(CallInfo{Tool: "t"})
	o.Conflict(CallInfo{})
	o.Commit(CallInfo{}, 1)
	o.Acquired("p")
	o.Released("p")
	if len(first) != 5 || !slices.Equal(first, second) {
		t.Errorf("first %q, second %q", first, second)
	}
}
