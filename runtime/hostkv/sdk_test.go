package hostkv

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
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

const said = `1048576 true <nil>
0 false <nil>
0 true true <nil>
301 1093426 <nil>
7 21 <nil>
250 31125 <nil>
2 log ab <nil>
1099511627776 <nil>
1099511627775 <nil>
true
<nil>
true
true true
`

// The Go SDK says the same to a host as to its own double.
func TestSDK(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	out := filepath.Join(t.TempDir(), "keeper.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "./testdata/keeper")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got := runCommand(t, module); got != said {
		t.Errorf("the guest said\n%s", got)
	}
	native, err := exec.Command("go", "run", "./testdata/keeper").CombinedOutput()
	if err != nil || string(native) != said {
		t.Errorf("the double said\n%s", native)
	}
}

// runCommand returns what a command with keys of its own writes to its output.
func runCommand(t *testing.T, module []byte) string {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var stdout bytes.Buffer
	p := wasi.NewProcess(wasi.Options{Args: []string{"keeper"}, Stdout: &stdout, Stderr: os.Stderr})
	defer p.Close()
	k := kv.New(kv.NewOverlay(empty{}, kv.Options{
		Budget: &kv.Budget{Bytes: 8 << 20, Keys: 1000}, Quota: store.Usage{Keys: 1000, Bytes: 8 << 20},
	}), capabilities.NewLedger(granted, capabilities.Notify{}))
	if _, err := wasi.Instantiate(t.Context(), r, func(api.Module) *wasi.Process { return p }); err != nil {
		t.Fatal(err)
	}
	if _, err := Instantiate(t.Context(), r, func(api.Module) (*wasi.Process, *kv.Keys) { return p, k }); err != nil {
		t.Fatal(err)
	}
	_, err := r.Instantiate(t.Context(), module)
	if exit, ok := errors.AsType[*wasi.ExitError](err); err != nil && (!ok || exit.Code != 0) {
		t.Fatal(err)
	}
	return stdout.String()
}
