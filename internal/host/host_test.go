package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/trust"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

const manifest = `name: demo
version: 1.0.0
module: demo.wasm
abi: %s
tools:
  - name: save
    description: Makes a file.
    inputSchema: {type: object}
requests:
  volumes: [{name: data, path: /data, access: write}]
  env: [TZ]
  outbox: [{host: h.example.com}]
`

func write(t *testing.T, dir, abi string, module []byte) {
	t.Helper()
	for name, b := range map[string][]byte{"tool.yaml": fmt.Appendf(nil, manifest, abi), "demo.wasm": module} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func source(t *testing.T, dir string) (*tool.Package, config.Package) {
	t.Helper()
	src, err := tool.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return src, config.Package{Source: dir}
}

func open(t *testing.T, state string) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// records returns the audit log of a state folder.
func records(t *testing.T, state string) (rs []audit.Record) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: state})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	skipped, err := audit.Read(t.Context(), s, audit.Filter{}, func(r audit.Record) error {
		rs = append(rs, r)
		return nil
	})
	if err != nil || skipped > 0 {
		t.Fatalf("%d records skipped, %v", skipped, err)
	}
	return rs
}

// The name of a package is its author's to choose: it opens nothing that another
// package of this name has stored, and its code does not run.
func TestAnotherPackageOfTheNameIsRefused(t *testing.T) {
	h, mine, theirs := open(t, t.TempDir()), t.TempDir(), t.TempDir()
	write(t, mine, "command", w.Program(w.Create()))
	write(t, theirs, "command", w.Program(w.Say(1)))
	src, spec := source(t, mine)
	p, err := h.Load(t.Context(), src, spec, trust.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Call(t.Context(), runtime.Request{Tool: "save"}); r.Outcome != runtime.OK {
		t.Fatal(r.Err)
	}
	src, spec = source(t, theirs)
	for _, o := range []trust.Options{{}, {TrustChanges: true}} {
		_, err := h.Load(t.Context(), src, spec, o)
		if _, ok := errors.AsType[*trust.ChangedError](err); !ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
	spec.As = "other"
	if _, err := h.Load(t.Context(), src, spec, trust.Options{}); err != nil {
		t.Errorf("under a name of its own: %v", err)
	}
}

// What a changed package would do at its start is not done before somebody
// approves it.
func TestChangedCodeDoesNotRun(t *testing.T) {
	h, dir := open(t, t.TempDir()), t.TempDir()
	reactor := func(start []byte) []byte {
		return w.Module{
			Funcs: append(append([]w.Func{}, w.Imports...),
				w.Func{Name: "_initialize", Body: start},
				w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(0)},
				w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(0)}),
			Memory: [2]uint32{1, 2}, Data: w.ProgramData(),
		}.Encode()
	}
	write(t, dir, "reactor", reactor(nil))
	src, spec := source(t, dir)
	if _, err := h.Load(t.Context(), src, spec, trust.Options{}); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "reactor", reactor(w.Unreachable))
	src, spec = source(t, dir)
	_, err := h.Load(t.Context(), src, spec, trust.Options{})
	if _, ran := errors.AsType[*runtime.LoadError](err); ran || err == nil {
		t.Errorf("the changed module ran: %v", err)
	}
	_, err = h.Load(t.Context(), src, spec, trust.Options{TrustChanges: true})
	if _, ran := errors.AsType[*runtime.LoadError](err); !ran {
		t.Errorf("the trusted change did not run: %v", err)
	}
}

// What was admitted and what did not load is on record.
func TestLoadsAreOnRecord(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	h := open(t, state)
	write(t, dir, "command", w.Program())
	src, spec := source(t, dir)
	for range 2 {
		if _, err := h.Load(t.Context(), src, spec, trust.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "command", w.Module{Funcs: []w.Func{{Import: "env", Name: "x"}, {Name: "_start"}}}.Encode())
	src, spec = source(t, dir)
	if _, err := h.Load(t.Context(), src, spec, trust.Options{TrustChanges: true}); !errors.Is(err, runtime.ErrLink) {
		t.Errorf("error %v", err)
	}
	kinds := map[audit.Type]int{}
	for _, r := range records(t, state) {
		kinds[r.Type]++
	}
	if kinds[audit.TypeApprove] != 1 || kinds[audit.TypeLoad] != 1 {
		t.Errorf("records %v", kinds)
	}
}

func TestCheckSpec(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "command", w.Program())
	src, spec := source(t, dir)
	spec.Folders, spec.Env = map[string]string{"data": dir}, map[string]string{"TZ": "UTC"}
	if err := host.CheckSpec(src, spec, false); err != nil {
		t.Error(err)
	}
	for _, wrong := range []config.Package{
		{Folders: map[string]string{"other": dir}},
		{Managed: map[string]string{"other": "x"}},
		{Env: map[string]string{"HOME": "/"}},
		{Outbox: map[string]config.Sink{"other.example.com": {File: "/sent"}}},
		{Folders: spec.Folders, Outbox: map[string]config.Sink{"h.example.com": {File: filepath.Join(dir, "sent")}}},
		{Outbox: map[string]config.Sink{"h.example.com": {File: filepath.Join(dir, "none", "sent")}}},
		{Relaxations: config.Relaxations{Lines: []string{"volatile /data/n.json#/other"}}},
		{Replay: map[string]config.Replay{"other": "off"}},
		{CommitOnError: []string{"other"}},
	} {
		if host.CheckSpec(src, wrong, false) == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
	spec.Outbox = map[string]config.Sink{"h.example.com": {File: dir + "-sent"}}
	if err := host.CheckSpec(src, spec, false); err != nil {
		t.Error(err)
	}
	if s, ok := errors.AsType[*host.SpecError](host.CheckSpec(src, spec, true)); !ok || s.Field != "volumes.data" {
		t.Errorf("a folder although machines share the store: %v", s)
	}
}

// What a package that describes itself has is known when it is loaded; one that
// does not fit is not trusted by that.
func TestLoadChecksTools(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	write(t, dir, "command", w.Program())
	h := open(t, state)
	src, spec := source(t, dir)
	spec.CommitOnError = []string{"save", "other"}
	_, err := h.Load(t.Context(), src, spec, trust.Options{})
	if s, ok := errors.AsType[*host.SpecError](err); !ok || s.Field != "commitOnError[1]" {
		t.Errorf("%v", err)
	}
	spec.CommitOnError = spec.CommitOnError[:1]
	if _, err := h.Load(t.Context(), src, spec, trust.Options{}); err != nil {
		t.Error(err)
	}
}

func TestReachable(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	h := open(t, state)
	if err := h.Reachable(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if h.Reachable(t.Context()) == nil {
		t.Error("a state folder that is gone is reachable")
	}
}

// A host is closed in its time although a call does not end: the log says of it
// that it was given up.
func TestCloseKeepsToItsTime(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	state, dir := t.TempDir(), t.TempDir()
	h, err := host.Open(t.Context(), host.Options{State: state, Observer: runtime.Observer{Acquired: func(string) {
		close(began)
		<-release
	}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "command", w.Program(w.Create()))
	src, spec := source(t, dir)
	p, err := h.Load(t.Context(), src, spec, trust.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan *runtime.Result)
	go func() { ended <- p.Call(context.WithoutCancel(t.Context()), runtime.Request{Tool: "save"}) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, ok := errors.AsType[*runtime.RunningError](h.Close(ctx)); !ok || r.Calls != 1 {
		t.Errorf("closed while a call runs: %v", r)
	}
	var outcomes []runtime.Outcome
	for _, r := range records(t, state) {
		if r.Type == audit.TypeCall {
			outcomes = append(outcomes, r.Outcome)
		}
	}
	if !slices.Equal(outcomes, []runtime.Outcome{runtime.HostError}) {
		t.Errorf("on record: %v", outcomes)
	}
	close(release)
	if r := <-ended; r.Committed {
		t.Errorf("%s, committed", r.Outcome)
	}
}
