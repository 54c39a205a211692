package sandboxd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests"
)

// TestNamedTestsExist: a claim whose test is gone is no claim.
func TestNamedTestsExist(t *testing.T) {
	named := regexp.MustCompile(`\b((?:[a-z]+/)*[a-z]+)\.((?:Test|Fuzz)[A-Z]\w+)`)
	for _, doc := range []string{"SECURITY.md", "DESIGN.md", "README.md"} {
		found := named.FindAllStringSubmatch(readDoc(t, doc), -1)
		if doc == "SECURITY.md" && len(found) < 15 {
			t.Errorf("%s names %d tests: the pattern is not right", doc, len(found))
		}
		for _, m := range found {
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("%s names %s.%s, which does not exist", doc, m[1], m[2])
			}
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tests {
		if strings.Contains(readDoc(t, file), "func "+name+"(") {
			return true
		}
	}
	return false
}

// TestSecurityListsEachTrick holds the list of tricks against the guests.
func TestSecurityListsEachTrick(t *testing.T) {
	text := readDoc(t, "SECURITY.md")
	for _, name := range []string{"liars", "escapes", "liars-init"} {
		cases, err := guests.Cases(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if c.Honest != nil && *c.Honest {
				continue
			}
			if !strings.Contains(text, "| "+c.Attempted+" | "+name+"/") {
				t.Errorf("SECURITY.md does not list %s of %s: %q", c.Tool, name, c.Attempted)
			}
		}
	}
}

// TestReadmeCommands runs each command line of the README's examples, but the
// test command, which runs this.
func TestReadmeCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program from nothing")
	}
	state := t.TempDir()
	ran := 0
	for _, line := range commandLines(readDoc(t, "README.md")) {
		if line == "go test ./..." {
			continue
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		if out, err := cmd.CombinedOutput(); err != nil && !expected(line, err) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		ran++
	}
	if ran == 0 {
		t.Error("README.md has no example")
	}
}

// expected reports whether a command ends with the status that its comment
// says: "# exits 3".
func expected(line string, err error) bool {
	_, comment, ok := strings.Cut(line, "# exits ")
	if !ok {
		return false
	}
	return err.Error() == "exit status "+strings.TrimSpace(comment)
}

// commandLines returns the lines of the fenced sh blocks of a text.
func commandLines(text string) []string {
	var lines []string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```sh"
		case in && line != "" && !strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		}
	}
	return lines
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
