// Package mutants removes the checks of sandboxd one at a time and sees that
// the tests notice. Nothing of it is in the program: a mutant is built with
// go build -overlay.
package mutants

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var every = flag.Int("mutants", 0, "build and test each N-th mutant, 1: all of them (about ten minutes), 0: none, only check the list against the sources")

// mutant is one check removed: old, which occurs once in the file, becomes
// new; then the tests of the package must fail.
type mutant struct {
	name     string
	file     string // below the module's root
	old, new string
	pkg      string // whose tests must notice
	run      string // -run pattern
}

func TestMutants(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			source := read(t, filepath.Join(root, m.file))
			if n := strings.Count(source, m.old); n != 1 {
				t.Fatalf("%s: the check occurs %d times, want once:\n%s", m.file, n, m.old)
			}
			if *every > 0 && i%*every == 0 {
				green(t, root, m)
				kill(t, root, m, strings.Replace(source, m.old, m.new, 1))
			}
		})
	}
}

// baselines holds, for each package and pattern, the one run of the tests on
// the sources as they are.
var baselines sync.Map

// green fails the test where the mutant's tests fail without it too: what they
// say about the mutant would say nothing.
func green(t *testing.T, root string, m mutant) {
	t.Helper()
	run, _ := baselines.LoadOrStore(m.pkg+" "+m.run, sync.OnceValues(func() (string, error) {
		return goCommand(root, "test", "-count=1", "-short", "-run", m.run, m.pkg)
	}))
	out, err := run.(func() (string, error))()
	if err != nil || strings.Contains(out, "no tests to run") {
		t.Fatalf("the tests that should notice are not green without the mutant: %v\n%s", err, out)
	}
}

// tries is how often a mutant's tests have to pass before it has survived: those
// that draw their cases at random can miss it by chance.
const tries = 3

// kill builds the mutant and fails the test when the mutant's tests pass.
func kill(t *testing.T, root string, m mutant, mutated string) {
	dir := t.TempDir()
	replacement := filepath.Join(dir, filepath.Base(m.file))
	write(t, replacement, []byte(mutated))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): replacement}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	write(t, list, overlay)
	if out, err := goCommand(root, "build", "-overlay", list, "-o", filepath.Join(dir, "sandboxd"), "./cmd/sandboxd"); err != nil {
		t.Fatalf("mutant does not build: %v\n%s", err, out)
	}
	var out string
	for try := 0; try < tries && err == nil; try++ {
		out, err = goCommand(root, "test", "-overlay", list, "-count=1", "-short", "-run", m.run, m.pkg)
	}
	switch {
	case err == nil:
		t.Errorf("survived: %s passes without this check in %s:\n%s", m.pkg, m.file, m.old)
	case strings.Contains(out, "[build failed]") || !strings.Contains(out, "FAIL"):
		t.Fatalf("mutant's tests did not run: %v\n%s", err, out)
	default:
		fmt.Printf("killed  %s\n", m.name)
	}
}

func goCommand(root string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
