package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// source returns package corpus, built for the ABI.
func source(t *testing.T, abi tool.ABI) *tool.Package {
	t.Helper()
	b, err := build.New(build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := guests.Extract(dir); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "guests", "corpus", "tool.yaml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("\nabi: command\n"), []byte("\nabi: "+string(abi)+"\n"), 1)
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := tool.Load(filepath.Dir(manifest), b.Func(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// tree returns the contents of all files below a folder, by guest path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." {
			return nil
		}
		at := "/data/" + filepath.ToSlash(rel)
		if d.IsDir() {
			m[at] = "dir"
			return nil
		}
		b, err := os.ReadFile(p)
		m[at] = "file " + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func changed(was, is map[string]string) []string {
	var list []string
	for p, v := range is {
		if w, ok := was[p]; !ok || w != v {
			list = append(list, p)
		}
	}
	for p := range was {
		if _, ok := is[p]; !ok {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// TestCorpus holds every case against what it should come to, as a command and as a
// reactor, on instances that are put back to an image, made for the call, and made
// ahead: all come to the same.
func TestCorpus(t *testing.T) {
	c, err := guests.ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	for _, abi := range []tool.ABI{tool.Command, tool.Reactor} {
		src := source(t, abi)
		for i, k := range c.Cases {
			for j, s := range runtime.Strategies() {
				if testing.Short() && (abi != tool.Command || i%8 != 0 || i/8%3 != j) {
					continue
				}
				t.Run(k.Name()+"/"+string(abi)+"/"+string(s), func(t *testing.T) { try(t, src, cache, s, k) })
			}
		}
		if testing.Short() {
			break
		}
	}
}

func try(t *testing.T, src *tool.Package, cache string, s runtime.Strategy, k guests.CorpusCase) {
	ctx := context.Background()
	e, err := runtime.New(ctx, runtime.Options{Store: memstore.New(), Cache: cache, Strategy: s})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	dir := filepath.Join(t.TempDir(), "data")
	if err := guests.Seed("corpus", k.Seed, dir); err != nil {
		t.Fatal(err)
	}
	binding := runtime.Binding{
		Folders: map[string]string{"data": dir}, OptionalWrites: k.OptionalWrites, Outbox: src.Manifest.Requests.Outbox,
	}
	if k.Approved {
		binding.Relaxations = src.Manifest.Relaxations
	}
	p, err := e.Load(ctx, src, binding)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range k.Before {
		if r := p.Call(ctx, runtime.Request{Tool: b.Tool, Arguments: b.Arguments}); r.Outcome != runtime.OK {
			t.Fatalf("before: %s: %s, %v, %+v", b.Tool, r.Outcome, r.Err, r.Violation)
		}
	}
	was := tree(t, dir)
	met := false
	during := func(runtime.Progress) {
		if met {
			return
		}
		met = true
		for _, d := range k.During {
			if r := p.Call(ctx, runtime.Request{Tool: d.Tool, Arguments: d.Arguments}); r.Outcome != runtime.OK {
				t.Errorf("during: %s: %s, %v", d.Tool, r.Outcome, r.Err)
			}
		}
	}
	r := p.Call(ctx, runtime.Request{Tool: k.Tool, Arguments: k.Arguments, Notify: runtime.Notify{Progress: during}})
	judge(t, k, r)
	if got := changed(was, tree(t, dir)); !slices.Equal(got, k.Left) && len(got)+len(k.Left) > 0 {
		t.Errorf("left %v, want %v", got, k.Left)
	}
}

// textOf returns the texts of a result.
func textOf(t *testing.T, o runtime.Output) (text string) {
	t.Helper()
	for _, raw := range o.Content {
		var c struct{ Text string }
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		text += c.Text
	}
	return text
}

// judge holds what a call came to against the case.
func judge(t *testing.T, k guests.CorpusCase, r *runtime.Result) {
	t.Helper()
	if string(r.Outcome) != k.Outcome {
		t.Errorf("%s, want %s: %v, violation %+v", r.Outcome, k.Outcome, r.Err, r.Violation)
	}
	if (r.Violation != nil) != (k.Violation != nil) {
		t.Errorf("violation %+v, want %+v", r.Violation, k.Violation)
	} else if v := k.Violation; v != nil {
		got := guests.CorpusViolation{Hint: r.Violation.Hint.String(), Operation: string(r.Violation.Operation), Phase: string(r.Violation.Phase)}
		if got.Hint != v.Hint || got.Operation != v.Operation || got.Phase != v.Phase || v.Object != "" && !guests.Within(r.Violation.Object, v.Object) {
			t.Errorf("violation %+v, want %+v", *r.Violation, *v)
		}
	}
	if (k.Label == string(runtime.TimeDependent)) != (r.Replay == runtime.TimeDependent) {
		t.Errorf("replay %q, want label %q", r.Replay, k.Label)
	}
	var denials []guests.CorpusDenial
	for _, d := range r.Denials {
		denials = append(denials, guests.CorpusDenial{Capability: string(d.Capability), Operation: string(d.Operation), Object: d.Object})
	}
	if !slices.Equal(denials, k.Denials) && len(denials)+len(k.Denials) > 0 {
		t.Errorf("denials %v, want %v", denials, k.Denials)
	}
	sent := 0
	for _, e := range r.Effects {
		if e.Verb == capabilities.Send && r.Committed {
			sent++
		}
	}
	if sent != k.Sent {
		t.Errorf("%d sent, want %d", sent, k.Sent)
	}
	if k.Text != "" && r.Outcome == runtime.OK {
		if text := textOf(t, r.Output); text != k.Text {
			t.Errorf("text %q, want %q", text, k.Text)
		}
	}
}
