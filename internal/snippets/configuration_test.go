package snippets

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConfigurations has the program check each configuration of the pages, with
// a package and folders that are there.
func TestConfigurations(t *testing.T) {
	source, folder := regexp.MustCompile(`source: [^\s{]\S*`), regexp.MustCompile(`folder: [^\s}]+`)
	for page, want := range map[string]int{"docs/connect.md": 1, "docs/host-your-tool.md": 1, "docs/operate.md": 1} {
		checked := 0
		for _, b := range blocks(t, page) {
			if b.lang != "yaml" || !strings.HasPrefix(b.text, "packages:") {
				continue
			}
			checked++
			text := source.ReplaceAllLiteralString(b.text, "source: "+filepath.Join(clone, "guests", "notes"))
			text = folder.ReplaceAllLiteralString(text, "folder: "+t.TempDir())
			file := filepath.Join(t.TempDir(), "sandboxd.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program.Path, "config", "check", file)
			cmd.Env = environment(t)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ": fine; it serves ") {
				t.Errorf("%s: %v\n%s\n%s", page, err, out, text)
			}
		}
		if checked != want {
			t.Errorf("%s: %d configurations, want %d", page, checked, want)
		}
	}
}

// TestReadmeHost: the README shows what docs/connect.md has for Claude Desktop.
func TestReadmeHost(t *testing.T) {
	host := func(page string) string {
		for _, b := range blocks(t, page) {
			if strings.Contains(b.text, `"mcpServers"`) {
				return b.text
			}
		}
		t.Fatalf("%s has no configuration of a host", page)
		return ""
	}
	if readme, page := host("README.md"), host("docs/connect.md"); readme != page {
		t.Errorf("README.md:\n%s\ndocs/connect.md:\n%s", readme, page)
	}
}
