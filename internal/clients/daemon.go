// Package clients runs the program under test, `sandboxd serve`, for the tests
// that drive it with real clients: the official SDKs, the MCP Inspector and the
// conformance suite.
package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long anything that is waited for may take on a busy machine.
const patience = time.Minute

// Program is the sandboxd that is tested.
type Program struct {
	Path  string // of the executable
	Cache string // folder of built and compiled modules, shared by all that it is run for
}

// Build builds the program into dir, where its cache will be, too.
func Build(dir string) (*Program, error) {
	p := &Program{Path: filepath.Join(dir, "sandboxd"), Cache: filepath.Join(dir, "cache")}
	if goruntime.GOOS == "windows" {
		p.Path += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", p.Path, "github.com/sandboxd/sandboxd/cmd/sandboxd")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build sandboxd: %w\n%s", err, out)
	}
	return p, nil
}

// Command returns the command line of the program with a state folder.
func (p *Program) Command(state string, args ...string) []string {
	return append([]string{p.Path, "--state", state, "--cache", p.Cache}, args...)
}

// Package builds the package in dir once and returns a folder with its module
// and manifest, so that to serve it needs no compiler.
func (p *Program) Package(t testing.TB, dir string) string {
	t.Helper()
	built := filepath.Join(t.TempDir(), "package")
	line := p.Command(t.TempDir(), "build", dir, "--out", built)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", dir, err, out)
	}
	return built
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Daemon is a running `sandboxd serve`.
type Daemon struct {
	URL   string // of the MCP endpoint
	State string
	log   *lines
	stop  func() // once
}

// Stop interrupts the daemon and waits until it has ended. The test fails when it
// does not end cleanly.
func (d *Daemon) Stop() { d.stop() }

// address is how the daemon says where it serves HTTP.
var address = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// Serve starts `sandboxd serve` over HTTP on a free port, with the arguments, and
// returns when it is ready. It is stopped at the end of the test, which fails
// when the daemon does not end cleanly.
func (p *Program) Serve(t testing.TB, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{State: t.TempDir(), log: &lines{found: make(chan string, 1)}}
	line := p.Command(d.State, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { defer close(read); d.log.read(stderr) }()
	ended := make(chan error, 1)
	go func() { <-read; ended <- cmd.Wait() }()
	d.stop = sync.OnceFunc(func() { d.end(t, cmd, ended) })
	t.Cleanup(d.stop)
	select {
	case addr := <-d.log.found:
		d.URL = "http://" + addr + "/mcp"
		d.ready(t, "http://"+addr+"/readyz")
	case err := <-ended:
		ended <- err
		t.Fatalf("%s: ended: %v\n%s", strings.Join(line, " "), err, d.log)
	case <-time.After(patience):
		t.Fatalf("%s: says no address\n%s", strings.Join(line, " "), d.log)
	}
	return d
}

// ready waits until the daemon says that it takes calls.
func (d *Daemon) ready(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		r, err := http.Get(url)
		if err != nil {
			t.Fatalf("%v\n%s", err, d.log)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %s\n%s", url, r.Status, d.log)
		}
	}
}

func (d *Daemon) end(t testing.TB, cmd *exec.Cmd, ended chan error) {
	stopped := interrupt(cmd)
	select {
	case err := <-ended:
		if err != nil && stopped {
			t.Errorf("sandboxd serve: %v\n%s", err, d.log)
		}
	case <-time.After(patience):
		cmd.Process.Kill()
		t.Errorf("sandboxd serve: did not end when interrupted\n%s", d.log)
	}
	if t.Failed() {
		t.Logf("log of the daemon:\n%s", d.log)
	}
}

// interrupt asks a process to end, and reports whether it can do so cleanly:
// Windows knows no interrupt of another process.
func interrupt(cmd *exec.Cmd) bool {
	if cmd.Process.Signal(os.Interrupt) == nil {
		return true
	}
	cmd.Process.Kill()
	return false
}

// Record is what the audit log says about a call.
type Record struct {
	Type      string `json:"type"`
	Outcome   string `json:"outcome"`
	Committed bool   `json:"committed"`
	Principal string `json:"principal"`
	Error     string `json:"error"`
}

// Ended waits until the audit log of a state folder holds n calls of the tool, and
// returns their records.
func (p *Program) Ended(t testing.TB, state, tool string, n int) []Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line := p.Command(state, "log", "--json", "--follow", "--tool", tool)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var rs []Record
	for d := json.NewDecoder(out); len(rs) < n; {
		var r Record
		if err := d.Decode(&r); err != nil {
			t.Fatalf("log of %s: %d of %d calls: %v", tool, len(rs), n, err)
		}
		if r.Type == "call" {
			rs = append(rs, r)
		}
	}
	return rs
}

// lines keeps what a process writes and looks for the address in it.
type lines struct {
	found chan string

	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) read(r io.Reader) {
	told := false
	for s := bufio.NewScanner(r); s.Scan(); {
		l.mu.Lock()
		l.text.WriteString(s.Text() + "\n")
		l.mu.Unlock()
		if m := address.FindStringSubmatch(s.Text()); m != nil && !told {
			told = true
			l.found <- m[1]
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
