package sandboxd_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/guests"
)

// TestNamedTestsExist: a claim whose test is gone is no claim.
func TestNamedTestsExist(t *testing.T) {
	named := regexp.MustCompile(`\b((?:[a-z]+/)*[a-z]+)\.((?:Test|Fuzz)[A-Z]\w+)`)
	for _, doc := range documents(t) {
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

// TestLinks holds links between the documents, and the files that they name.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(readDoc(t, doc), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
			}
		}
	}
}

// TestNamesInDocs holds metrics and alerts that any document names against the
// list of metrics and the file of alerts.
func TestNamesInDocs(t *testing.T) {
	metric, alert := regexp.MustCompile("`(sandboxd_[a-z_]+)"), regexp.MustCompile("`(Sandboxd[A-Z][A-Za-z]+)`")
	metrics, alerts := readDoc(t, "docs/metrics.md"), readDoc(t, "deploy/prometheus/alerts.yml")
	named := 0
	for _, doc := range []string{"README.md", "docs/operate.md", "docs/audit.md", "docs/connect.md"} {
		text := readDoc(t, doc)
		for _, m := range metric.FindAllStringSubmatch(text, -1) {
			named++
			if !strings.Contains(metrics, "`"+m[1]+"`") {
				t.Errorf("%s names the metric %s, which docs/metrics.md does not have", doc, m[1])
			}
		}
		for _, m := range alert.FindAllStringSubmatch(text, -1) {
			named++
			if !strings.Contains(alerts, "alert: "+m[1]+"\n") {
				t.Errorf("%s names the alert %s, which does not exist", doc, m[1])
			}
		}
	}
	if named < 4 {
		t.Errorf("%d names found: the patterns are not right", named)
	}
}

// documents returns the paths of all documents for people.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join("docs", "*.md"))
	if err != nil || len(docs) < 5 {
		t.Fatalf("%v %v", docs, err)
	}
	return append(docs, "SECURITY.md", "DESIGN.md", "README.md")
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
// test command, which runs this. A block without a language is cut out of what the
// commands before it print.
func TestReadmeCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program from nothing")
	}
	dir, addr := t.TempDir(), freeAddress(t)
	// The program is built beside the clone, not over one that is there, and
	// serves where nothing else does.
	program := filepath.Join(dir, "sandboxd")
	elsewhere := strings.NewReplacer("-o sandboxd ", "-o "+program+" ", "./sandboxd serve ", program+" serve --http "+addr+" ",
		"./sandboxd ", program+" ", pageAddress, addr)
	ran, printed := 0, ""
	for _, b := range fencedBlocks(readDoc(t, "README.md")) {
		switch b.mark {
		case "":
			checkSample(t, b.text, printed)
		case "sh":
			printed = ""
			for _, line := range commandLines(b.text) {
				if line == "go test ./..." {
					continue
				}
				ran++
				if strings.Contains(line, " serve ") {
					serveInBackground(t, elsewhere.Replace(line), dir, addr)
					continue
				}
				out, err := shell(".", elsewhere.Replace(line), dir)
				if (err == nil && strings.Contains(line, "# exits ")) || (err != nil && !expected(line, err)) {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
				printed += out
			}
		}
	}
	if ran == 0 {
		t.Error("README.md has no example")
	}
}

// pageAddress is where the pages' daemon listens.
const pageAddress = "127.0.0.1:8080"

// freeAddress returns an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serveInBackground runs a command line that serves until the test ends, and
// returns when it is ready. It must end cleanly.
func serveInBackground(t *testing.T, line, home, addr string) {
	t.Helper()
	cmd := command(".", "exec "+line, home)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v\n%s", line, err, said.String())
		}
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(5 * time.Minute); ; {
		if r, err := http.Get("http://" + addr + "/readyz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: ended", line)
		case <-late:
			t.Fatalf("%s: never ready", line)
		}
	}
}

// checkSample holds a block against the output that it is cut out of: the parts
// between lines of three dots are in it, in order.
func checkSample(t *testing.T, sample, out string) {
	t.Helper()
	for part := range strings.SplitSeq(sample, "...\n") {
		if part == "" {
			continue
		}
		_, after, found := strings.Cut(out, part)
		if !found {
			t.Fatalf("the program does not print this, or not in this order:\n%s\nbut:\n%s", part, out)
		}
		out = after
	}
}

// fenced is a fenced block: what is after its fence, and its text.
type fenced struct{ mark, text string }

// fencedBlocks returns the fenced blocks of a page.
func fencedBlocks(page string) []fenced {
	var all []fenced
	in := false
	for line := range strings.Lines(page) {
		mark, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && in:
			in = false
		case fence:
			in = true
			all = append(all, fenced{mark: mark})
		case in:
			all[len(all)-1].text += line
		}
	}
	return all
}

// shell runs a command line with a state folder of its own and returns what it
// prints on a wide screen.
func shell(dir, line, home string, env ...string) (string, error) {
	out, err := command(dir, line, home, env...).CombinedOutput()
	return string(out), err
}

func command(dir, line, home string, env ...string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(home, "state"), "COLUMNS="), env...)
	return cmd
}

// TestGoPage goes the way of docs/go.md: it lays out the page's files and runs
// its commands, without a network.
func TestGoPage(t *testing.T) { followPage(t, "docs/go.md", "") }

// TestTransactionsPage does the same with docs/transactions.md. What the page has of
// MCP is run by the test of this name in internal/mcpserver.
func TestTransactionsPage(t *testing.T) { followPage(t, "docs/transactions.md", "") }

// TestVerifyPage does the same with docs/verify.md.
func TestVerifyPage(t *testing.T) { followPage(t, "docs/verify.md", "") }

// TestHostPage does the same with docs/host-your-tool.md. At its end the daemon
// that was started on the way must list the tool as it was approved.
func TestHostPage(t *testing.T) {
	followPage(t, "docs/host-your-tool.md", `
n=0
until curl -sf http://`+pageAddress+`/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | grep -q '"readOnlyHint":false'; do
  n=$((n+1)); [ $n -lt 600 ]; sleep 0.2
done
trap - EXIT
kill $served
wait $served`)
}

// followPage lays out a page's files, runs its commands and then some, and looks
// for what the page says is printed.
func followPage(t *testing.T, name, then string) {
	t.Helper()
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
	page := readDoc(t, name)
	placed := strings.NewReplacer("/path/to/clone", root, pageAddress, freeAddress(t))
	out, err := shell(dir, placed.Replace(script(page)+then), dir, "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, b := range fencedBlocks(page) {
		if b.mark != "text" {
			continue
		}
		for line := range strings.Lines(b.text) {
			if !strings.Contains(out, line) {
				t.Errorf("the page says that this is printed: %s\n%s", line, out)
			}
		}
	}
	if strings.Contains(out, "warning: ") {
		t.Errorf("warns:\n%s", out)
	}
}

// script returns a shell script of a page: its fenced blocks of sh, and a here
// document for each block that names a file after its language. What serves HTTP
// does so in the background, as process $served.
func script(page string) string {
	var b strings.Builder
	const end = "END-OF-FILE"
	for _, block := range fencedBlocks(page) {
		if _, name, ok := strings.Cut(block.mark, " "); ok {
			fmt.Fprintf(&b, "cat > %s <<'%s'\n%s%s\n", name, end, block.text, end)
		}
		if block.mark != "sh" {
			continue
		}
		for _, line := range commandLines(block.text) {
			command, status, fails := strings.Cut(line, "# exits ")
			switch {
			case fails:
				fmt.Fprintf(&b, "if %s; then exit 99; else [ $? -eq %s ]; fi\n", command, status)
			case strings.Contains(line, "sandboxd serve ") && !strings.Contains(line, "--stdio"):
				fmt.Fprintf(&b, "%s --http %s &\nserved=$!\ntrap 'kill $served' EXIT\n", line, pageAddress)
				fmt.Fprintf(&b, "until curl -sf http://%s/readyz; do kill -0 $served; sleep 0.2; done\n", pageAddress)
			default:
				b.WriteString(line + "\n")
			}
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

// commandLines returns the commands of a block of sh; one goes on after a line
// that ends in a backslash.
func commandLines(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
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
