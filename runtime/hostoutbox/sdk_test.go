package hostoutbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

const said = "<nil> <nil> <nil>\ntrue\ntrue true true true true true "

// The Go SDK says the same to a host as to its own double.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	out := filepath.Join(t.TempDir(), "sender.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "./testdata/sender")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{t: t}
	g.serve(known{}, open, 1<<20)
	if got := runCommand(t, module, g.box); got != said {
		t.Errorf("the guest said\n%s", got)
	}
	effects := g.box.Effects()
	want := capabilities.Effect{Verb: capabilities.Send, Kind: capabilities.KindOutbox, Object: "h.example/x", Bytes: 4, Detail: "k"}
	if len(effects) != 2 || effects[0] != want || effects[1].Object != "h.example/" {
		t.Errorf("sent %+v", effects)
	}
	native, err := exec.Command("go", "run", "./testdata/sender").CombinedOutput()
	if err != nil || string(native) != said {
		t.Errorf("the double said\n%s", native)
	}
}

// runCommand returns what a command writes to its output.
func runCommand(t *testing.T, module []byte, b *outbox.Box) string {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var stdout bytes.Buffer
	p := wasi.NewProcess(wasi.Options{Args: []string{"sender"}, Stdout: &stdout, Stderr: os.Stderr})
	defer p.Close()
	if _, err := wasi.Instantiate(t.Context(), r, func(api.Module) *wasi.Process { return p }); err != nil {
		t.Fatal(err)
	}
	if _, err := Instantiate(t.Context(), r, func(api.Module) (*wasi.Process, *outbox.Box) { return p, b }); err != nil {
		t.Fatal(err)
	}
	_, err := r.Instantiate(t.Context(), module)
	if exit, ok := errors.AsType[*wasi.ExitError](err); err != nil && (!ok || exit.Code != 0) {
		t.Fatal(err)
	}
	return stdout.String()
}
