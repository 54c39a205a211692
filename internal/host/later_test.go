package host_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/trust"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// A description whose schema is not in the order of a record, with what JSON can be
// written with otherwise.
const (
	schema      = `{"type":"object","required":["b","a"],"properties":{"b":{"type":"string","description":"a < b & c"},"a":{"type":"string"}}}`
	description = `{"tools":[
		{"name":"zwei","description":"Says <it>.","inputSchema":` + schema + `,"annotations":{"destructiveHint":false}},
		{"name":"eins","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"z":{},"y":{}}},"annotations":{"readOnlyHint":true}}]}`
)

// describing lays out a package that describes itself.
func describing(t *testing.T, description string, parts ...[]byte) (*tool.Package, config.Package) {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{"tool.yaml": []byte("name: demo\nversion: 1.0.0\nmodule: demo.wasm\nabi: reactor\n"), "demo.wasm": w.Reactor(description, parts...)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return source(t, dir)
}

// cached opens a host with a cache, and counts what it compiles.
func cached(t *testing.T, state, cache string, compiled *int) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{State: state, Cache: cache, Observer: runtime.Observer{
		Compile: func(string, int) func() { *compiled++; return nil },
	}})
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

// told is a channel of how loads ended, and what tells it.
func told() (<-chan error, func(error)) {
	c := make(chan error, 2)
	return c, func(err error) { c <- err }
}

func schemaOf(p *runtime.Package, name string) string {
	t, _ := p.Tool(name)
	return string(t.Definition.InputSchema)
}

// The first use is a load in full. From then on the tools are known beforehand: as
// the module put them where that was kept, as they are on record where not.
func TestLoadLater(t *testing.T) {
	state, cache := t.TempDir(), t.TempDir()
	var compiled int
	src, spec := describing(t, description)
	h := cached(t, state, cache, &compiled)
	_, tell := told()
	first, later, err := h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
	if err != nil || later || compiled != 1 {
		t.Fatalf("first use: later %t, %d compilations, %v", later, compiled, err)
	}
	load := func(h *host.Host) *runtime.Package {
		t.Helper()
		done, tell := told()
		compiled = 0
		p, later, err := h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
		if err != nil || !later || compiled != 0 {
			t.Fatalf("later %t, %d compilations, %v", later, compiled, err)
		}
		if r := p.Call(t.Context(), runtime.Request{Tool: "zwei", Arguments: []byte(`{"a":"","b":""}`)}); r.Outcome != runtime.OK || compiled != 1 {
			t.Errorf("%s, %v, %d compilations", r.Outcome, r.Err, compiled)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		return p
	}
	again := load(h)
	for _, tl := range first.Tools() {
		other, ok := again.Tool(tl.Definition.Name)
		if !ok || string(other.Definition.InputSchema) != string(tl.Definition.InputSchema) || string(other.Definition.OutputSchema) != string(tl.Definition.OutputSchema) ||
			other.Effective != tl.Effective || other.Definition.Description != tl.Definition.Description {
			t.Errorf("%+v, listed as %+v", tl.Definition, other.Definition)
		}
	}
	if again.Tools()[0].Definition.Name != "zwei" || schemaOf(again, "zwei") != schema {
		t.Errorf("in another order: %s", schemaOf(again, "zwei"))
	}
	kept, err := filepath.Glob(filepath.Join(cache, "described", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	for _, b := range []string{"", "[]", "null", `[{"name":"eins","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`} {
		if err := os.WriteFile(kept[0], []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if p := load(h); len(p.Tools()) != 2 || strings.Index(schemaOf(p, "zwei"), `"a":`) > strings.Index(schemaOf(p, "zwei"), `"b":`) {
			t.Errorf("kept %q: %d tools, %s", b, len(p.Tools()), schemaOf(p, "zwei"))
		}
		if p := load(h); schemaOf(p, "zwei") != schema {
			t.Errorf("kept %q: the order is not kept again", b)
		}
	}
	if p := load(cached(t, state, "", &compiled)); strings.Index(schemaOf(p, "zwei"), `"a":`) > strings.Index(schemaOf(p, "zwei"), `"b":`) {
		t.Errorf("without a cache: %s", schemaOf(p, "zwei"))
	}
}

// What a load that comes later shows is told as what comes of one in full.
func TestLoadLaterTells(t *testing.T) {
	dir := t.TempDir()
	manifest := "name: demo\nmodule: demo.wasm\nreseeds: true\ntools:\n  - name: say\n    inputSchema: {type: object}\n"
	for name, b := range map[string][]byte{"tool.yaml": []byte(manifest), "demo.wasm": w.Program(w.Say(1))} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, spec := source(t, dir)
	var log bytes.Buffer
	h, err := host.Open(t.Context(), host.Options{State: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	for _, want := range []bool{false, true} {
		log.Reset()
		done, tell := told()
		p, later, err := h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
		if err != nil || later != want {
			t.Fatalf("later %t, %v", later, err)
		}
		if later {
			p.Warm()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(log.String(), "package=demo") || !strings.Contains(log.String(), "standard input") {
			t.Errorf("later %t: logged %q", later, log.String())
		}
	}
}

// Of a record that says other than the module nothing is believed but for its list:
// no call runs, that is on record, and the package is loaded in full, and refused,
// from then on.
func TestLyingRecord(t *testing.T) {
	state := t.TempDir()
	var compiled int
	src, spec := describing(t, description)
	c := host.Candidate(src, spec)
	c.Definitions = []tool.Definition{{Name: "eins", InputSchema: []byte(`{"type":"object"}`), Claim: capabilities.Claim{ReadOnly: capabilities.True}}}
	if _, err := trust.Open(state).Approve(c); err != nil {
		t.Fatal(err)
	}
	h := cached(t, state, "", &compiled)
	done, tell := told()
	p, later, err := h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
	if err != nil || !later || len(p.Tools()) != 1 {
		t.Fatalf("later %t, %v", later, err)
	}
	r := p.Call(t.Context(), runtime.Request{Tool: "eins"})
	if _, changed := errors.AsType[*trust.ChangedError](r.Err); r.Outcome != runtime.Refused || !changed {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if _, changed := errors.AsType[*trust.ChangedError](<-done); !changed {
		t.Error("the lie is not told")
	}
	p, later, err = h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
	if _, changed := errors.AsType[*trust.ChangedError](err); p != nil || later || !changed {
		t.Errorf("again: later %t, %v", later, err)
	}
	h.Log().Flush()
	kinds := map[audit.Type]int{}
	for _, r := range records(t, state) {
		kinds[r.Type]++
	}
	if kinds[audit.TypeLoad] != 2 || kinds[audit.TypeApprove] != 0 {
		t.Errorf("records %v", kinds)
	}
}

// Nothing of a package that is not the one on record is listed, or run.
func TestChangedIsNotListed(t *testing.T) {
	h := open(t, t.TempDir())
	src, spec := describing(t, description)
	_, tell := told()
	if _, _, err := h.LoadLater(t.Context(), src, spec, trust.Options{}, tell); err != nil {
		t.Fatal(err)
	}
	changed, _ := describing(t, description, w.Unreachable)
	_, later, err := h.LoadLater(t.Context(), changed, spec, trust.Options{}, tell)
	if _, ran := errors.AsType[*runtime.LoadError](err); err == nil || ran || later {
		t.Errorf("later %t, %v", later, err)
	}
	_, later, err = h.LoadLater(t.Context(), changed, spec, trust.Options{TrustChanges: true}, tell)
	if _, ran := errors.AsType[*runtime.LoadError](err); !ran || later {
		t.Errorf("trusted: later %t, %v", later, err)
	}
	spec.CommitOnError = []string{"drei"}
	_, later, err = h.LoadLater(t.Context(), src, spec, trust.Options{}, tell)
	if _, ok := errors.AsType[*host.SpecError](err); !ok || later {
		t.Errorf("a setting that does not fit: later %t, %v", later, err)
	}
}
