package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWasmOptThatIsMissing: a program that is configured and not there is told by the
// check, and stops nothing.
func TestWasmOptThatIsMissing(t *testing.T) {
	dir, pkg := t.TempDir(), newPackageOnly(t)
	file := filepath.Join(dir, "sandboxd.yaml")
	s := newShell(t)
	for program, told := range map[string]bool{"off": false, "./absent": true} {
		must(t, os.WriteFile(file, fmt.Appendf(nil, "wasmOpt: %s\npackages: [{source: %s}]\n", program, pkg), 0o600))
		code, out, diag := s.run("config", "check", file)
		if code != 0 || !strings.Contains(out, "fine") || strings.Contains(diag, "wasmOpt: ") != told {
			t.Errorf("%s: status %d, %q, %q", program, code, out, diag)
		}
	}
}
