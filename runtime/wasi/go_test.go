package wasi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// goGuest builds the program in testdata and compiles it.
func goGuest(t *testing.T) (wazero.Runtime, wazero.CompiledModule, func(*Process)) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a Go program")
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-o", out, "./testdata/goguest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, b)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntime(t.Context())
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	var now *Process
	if _, err := Instantiate(t.Context(), r, func(api.Module) *Process { return now }); err != nil {
		t.Fatal(err)
	}
	compiled, err := r.CompileModule(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	return r, compiled, func(p *Process) { now = p }
}

// TestGoGuest: standard Go programs work.
func TestGoGuest(t *testing.T) {
	r, module, bind := goGuest(t)
	for _, s := range []struct {
		program string
		grant   grant
		out     string
		denials int
		changed []string
	}{
		{"read", readOnly, "", 0, nil},
		{"write", writer, "", 0, []string{"mkdir made", "put file", "put made/g", "times made", "times ."}},
		{"refused", readOnly, "", 3, nil},
		{"env", readOnly, "[env] value [KEY=value PWD=/data]\ninput", 0, nil},
		{"sleep", readOnly, "slept\n", 0, nil},
	} {
		t.Run(s.program, func(t *testing.T) {
			dir, err := volume.OpenDir(filepath.Join(fixture(t), "volume"))
			if err != nil {
				t.Fatal(err)
			}
			l := s.grant.ledger()
			o := volume.New(dir, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 100}})
			tmp := volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 100}})
			defer func() {
				if err := errors.Join(o.Close(), tmp.Close(), dir.Close()); err != nil {
					t.Error(err)
				}
			}()
			var out, log bytes.Buffer
			p := NewProcess(Options{
				Args: []string{"guest", s.program}, Env: []string{"KEY=value", "PWD=/data"},
				Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &log, Ledger: l,
				Volumes: []*files.Volume{files.New("data", "/data", o, l), files.Scratch("/tmp", tmp, l)},
			})
			defer p.Close()
			bind(p)
			_, err = r.InstantiateModule(t.Context(), module, wazero.NewModuleConfig().WithName(""))
			if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Code != 0 {
				t.Fatalf("%v\n%s", err, log.String())
			}
			if out.String() != s.out || len(l.Denials()) != s.denials {
				t.Errorf("output %q, denials %v", out.String(), l.Denials())
			}
			if got := steps(t, o); !slices.Equal(got, s.changed) {
				t.Errorf("changed %v, want %v", got, s.changed)
			}
		})
	}
}

func steps(t *testing.T, o *volume.Overlay) []string {
	t.Helper()
	c, err := o.Change()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range c.Steps {
		list = append(list, string(s.Action)+" "+s.Path)
	}
	return list
}
