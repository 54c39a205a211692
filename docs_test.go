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
// test command, which runs this. What the README shows of the demo's output is
// cut out of it.
func TestReadmeCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program from nothing")
	}
	readme, dir := readDoc(t, "README.md"), t.TempDir()
	// The program is built beside the clone, not over one that is there.
	elsewhere := strings.NewReplacer("-o sandboxd ", "-o "+filepath.Join(dir, "sandboxd")+" ", "./sandboxd ", filepath.Join(dir, "sandboxd")+" ")
	ran := 0
	for _, line := range commandLines(readme) {
		if line == "go test ./..." {
			continue
		}
		out, err := shell(".", elsewhere.Replace(line), dir)
		if err != nil && !expected(line, err) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if strings.HasSuffix(line, " demo") {
			checkSample(t, readme, out)
		}
		ran++
	}
	if ran == 0 {
		t.Error("README.md has no example")
	}
}

// checkSample holds the first block without a language against the output that
// it is cut out of: the parts between lines of three dots are in it, in order.
func checkSample(t *testing.T, doc, out string) {
	t.Helper()
	blocks := samples(doc)
	if len(blocks) == 0 {
		t.Fatal("no sample")
	}
	for part := range strings.SplitSeq(blocks[0], "...\n") {
		if part == "" {
			continue
		}
		_, after, found := strings.Cut(out, part)
		if !found {
			t.Fatalf("the program does not print this, or not in this order:\n%s", part)
		}
		out = after
	}
}

// samples returns the fenced blocks of a text that have no language.
func samples(doc string) []string {
	var all []string
	var block strings.Builder
	fence := ""
	for line := range strings.Lines(doc) {
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && fence == "":
			fence = "```" + mark
			block.Reset()
		case isFence:
			if fence == "```\n" {
				all = append(all, block.String())
			}
			fence = ""
		default:
			block.WriteString(line)
		}
	}
	return all
}

// shell runs a command line with a state folder of its own and returns what it
// prints on a wide screen.
func shell(dir, line, home string, env ...string) (string, error) {
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(home, "state"), "COLUMNS="), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestGoPage goes the way of docs/go.md: it lays out the page's files and runs
// its commands, without a network.
func TestGoPage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program from nothing")
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "sandboxd"), "./cmd/sandboxd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page := strings.ReplaceAll(readDoc(t, "docs/go.md"), "/path/to/clone", root)
	out, err := shell(dir, script(page), dir, "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, printed, _ := strings.Cut(page, "```text\n")
	printed, _, _ = strings.Cut(printed, "```")
	for line := range strings.Lines(printed) {
		if !strings.Contains(out, line) {
			t.Errorf("the page says that this is printed: %s\n%s", line, out)
		}
	}
	if strings.Contains(out, "warning: ") {
		t.Errorf("warns:\n%s", out)
	}
}

// script returns a shell script of a page: its fenced blocks of sh, and a here
// document for each block that names a file after its language.
func script(page string) string {
	var b strings.Builder
	const end = "END-OF-FILE"
	in, file := false, false
	for line := range strings.Lines(page) {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && (in || file):
			if file {
				b.WriteString(end + "\n")
			}
			in, file = false, false
		case fence && mark == "sh":
			in = true
		case fence:
			if _, name, ok := strings.Cut(mark, " "); ok {
				file = true
				b.WriteString("cat > " + name + " <<'" + end + "'\n")
			}
		case in || file:
			b.WriteString(line)
		}
	}
	return b.String()
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
