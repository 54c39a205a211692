package hostmcp_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/tool"
)

// TestSDK lets a guest of the Go SDK send.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	e, err := runtime.New(t.Context(), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	p, err := e.Load(t.Context(), &tool.Package{Module: goGuest(t, "exe"), Manifest: tool.Manifest{
		Name: "noter", ABI: tool.Command,
		Tools:  []tool.Definition{{Name: "count", InputSchema: []byte(`{"type":"object","properties":{"steps":{"type":"integer"}}}`)}},
		Limits: tool.Limits{Memory: 64 << 20, Timeout: time.Minute, Output: 1 << 16, Writes: 1 << 16, Files: 10},
	}}, runtime.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	r := p.Call(t.Context(), runtime.Request{Tool: "count", Arguments: []byte(`{"steps":2}`), Notify: runtime.Notify{
		Progress: func(p runtime.Progress) {
			got = append(got, fmt.Sprintf("%v/%v %s", p.Progress, p.Total, p.Message))
		},
		Log: func(m runtime.LogMessage) { got = append(got, m.Level+": "+m.Text) },
	}})
	if r.Outcome != runtime.OK || len(r.Output.Content) != 2 || string(r.Output.Meta["example.com/steps"]) != "2" {
		t.Errorf("%s (%v): %s", r.Outcome, r.Err, r.Output.Content)
	}
	if want := []string{"1/2 counting", "2/2 counting", "notice: counted"}; !slices.Equal(got, want) || r.DroppedNotes != 0 {
		t.Errorf("got %q, %d dropped", got, r.DroppedNotes)
	}
}

// A reactor imports the same functions with the same signatures.
func TestSDKReactorLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a Go guest")
	}
	module := goGuest(t, "c-shared")
	if err := runtime.CheckLink(module, tool.Reactor); err != nil {
		t.Error(err)
	}
	if !bytes.Contains(module, []byte(hostmcp.ModuleName)) {
		t.Error("the functions are not imported")
	}
}

// goGuest builds testdata/noter.
func goGuest(t *testing.T, mode string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "noter.wasm")
	cmd := exec.Command("go", "build", "-buildmode="+mode, "-ldflags=-s -w", "-o", out, "./testdata/noter")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
