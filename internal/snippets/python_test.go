package snippets

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long anything that is waited for may take on a busy machine.
const patience = 2 * time.Minute

// home returns a home folder for what a program starts without handing on its
// environment, as the SDK does: the state is kept there, and Go finds what it has
// downloaded and built.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(out))
	config := filepath.Join(dir, ".config", "go")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "GOCACHE=" + folders[0] + "\nGOMODCACHE=" + folders[1] + "\n"
	if err := os.WriteFile(filepath.Join(config, "env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPython runs the page's programs, or compiles them where there is no Python
// that has the SDK.
func TestPython(t *testing.T) {
	interpreter := *python
	if interpreter == "" {
		found, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("no python3 to compile the programs with; -python PATH runs them")
		}
		interpreter = found
	}
	ran := 0
	for _, b := range blocks(t, "docs/connect.md") {
		if b.lang != "python" {
			continue
		}
		ran++
		t.Run(b.file, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), b.file)
			text, env := b.text, environment(t)
			if strings.Contains(text, pageAddress) && *python != "" {
				d := serveWithTokens(t)
				text = strings.ReplaceAll(text, pageAddress, d.address())
				env = append(env, "SANDBOXD_TOKEN="+d.token)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if *python == "" {
				if out, err := exec.Command(interpreter, "-m", "py_compile", file).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Skip("compiled, not run: give a Python that has the package mcp with -python")
			}
			cmd := exec.Command(interpreter, file)
			cmd.Env = append(env, "HOME="+home(t))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "No notes saved.\n") || !strings.Contains(string(out), "list_notes ") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
	if ran != 2 {
		t.Errorf("%d programs, want one for each transport", ran)
	}
}
