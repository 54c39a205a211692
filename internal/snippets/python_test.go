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
			cmd.Env = env
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
