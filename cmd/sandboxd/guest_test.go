package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

const guestText = w.Said

// The parts of test guests.
var (
	create = w.Create
	say    = w.Say
	exit   = w.Exit
	guest  = w.Program
)

func trap() []byte    { return w.Unreachable }
func forever() []byte { return w.Forever }

// manifest declares one module under several claims.
const manifest = `name: demo
version: 1.0.0
module: demo.wasm
abi: command
tools:
  - name: save
    title: Save
    description: Makes a file.
    inputSchema: {type: object}
    annotations: {destructiveHint: false, idempotentHint: true, openWorldHint: false}
  - name: look
    title: Look
    description: Says that it reads.
    inputSchema: {type: object}
    annotations: {readOnlyHint: true}
requests:
  volumes: [{name: data, path: /data, access: write}]
limits: {timeout: 1s}
`

// newPackage lays out a package and returns its folder.
func newPackage(t *testing.T, module []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{"tool.yaml": []byte(manifest), "demo.wasm": module} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs the program in folders of its own.
type shell struct {
	t            testing.TB
	state, cache string
	stdin        string
	env          []string
}

// sharedCache keeps what the tests compile, for all of them.
var sharedCache string

// asProgram is the variable that makes the test binary the program.
const asProgram = "SANDBOXD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	dir, err := os.MkdirTemp("", "sandboxd-cli-")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func newShell(t testing.TB) *shell {
	t.Helper()
	t.Setenv("COLUMNS", "80") // the width of help texts
	return &shell{t: t, state: filepath.Join(t.TempDir(), "state"), cache: sharedCache}
}

func (s *shell) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	return s.runContext(s.t.Context(), args...)
}

func (s *shell) runContext(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, diag bytes.Buffer
	args = append([]string{"--state", s.state, "--cache", s.cache}, args...)
	code = run(ctx, args, strings.NewReader(s.stdin), &out, &diag, s.env)
	return code, out.String(), diag.String()
}
