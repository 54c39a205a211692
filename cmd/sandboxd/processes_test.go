package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

// records returns the audit log.
func (s *shell) records() (rs []audit.Record) {
	s.t.Helper()
	j, err := sqlite.Open(s.t.Context(), sqlite.Options{Folder: s.state})
	if err != nil {
		s.t.Fatal(err)
	}
	defer j.Close()
	skipped, err := audit.Read(s.t.Context(), j, audit.Filter{}, func(r audit.Record) error { rs = append(rs, r); return nil })
	if err != nil || skipped > 0 {
		s.t.Fatalf("%d records skipped, %v", skipped, err)
	}
	return rs
}

// program is the test binary as the program, in the folders of a shell.
func (s *shell) program(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--state", s.state, "--cache", s.cache}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+s.t.TempDir())
	return cmd
}

// daemon starts the program as a daemon and returns its URL. stop ends it as a
// service manager does.
func (s *shell) daemon(args ...string) (url string, stop func()) {
	s.t.Helper()
	return s.daemonAt("127.0.0.1:0", args...)
}

func (s *shell) daemonAt(addr string, args ...string) (url string, stop func()) {
	s.t.Helper()
	return s.serving("MCP at ", append([]string{"serve", "--http", addr}, args...)...)
}

// serving starts a command that stays up and returns its URL, which it says after
// a text.
func (s *shell) serving(after string, args ...string) (url string, stop func()) {
	s.t.Helper()
	url, _, stop = s.started(io.Discard, after, args...)
	return url, stop
}

// started is serving with the process, and with a copy of what it logs until it was
// stopped.
func (s *shell) started(log io.Writer, after string, args ...string) (url string, process *os.Process, stop func()) {
	s.t.Helper()
	cmd := s.program(args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var diag bytes.Buffer
	r := bufio.NewReader(io.TeeReader(stderr, io.MultiWriter(&diag, log)))
	for url == "" {
		line, err := r.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v; %s", cmd.Wait(), diag.String())
		}
		if _, rest, ok := strings.Cut(line, after); ok {
			url, _, _ = strings.Cut(rest, "/mcp")
		}
	}
	read := make(chan struct{})
	go func() { io.Copy(io.Discard, r); close(read) }()
	for {
		res, err := http.Get("http://127.0.0.1" + url[strings.LastIndex(url, ":"):] + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		time.Sleep(time.Millisecond) // and leaves it a processor
	}
	return url, cmd.Process, func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-read
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("daemon: %v; %s", err, diag.String())
		}
	}
}

// Three windows of a host, each with a server of its own, a person at a terminal
// and Prometheus use one state folder at the same time, with a daemon and
// without one.
func TestSeveralProcesses(t *testing.T) {
	for name, daemon := range map[string]bool{"with a daemon": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			pkg := newPackage(t, guest(create(), say(1)))
			var url string
			stop := func() {}
			if daemon {
				url, stop = s.daemon(pkg)
			}
			const windows, calls = 3, 5
			var work sync.WaitGroup
			for range windows {
				work.Go(func() { s.window(pkg, calls) })
			}
			for range calls {
				work.Go(func() {
					if out, err := s.program("call", "-p", pkg, "look").CombinedOutput(); err == nil || !strings.Contains(string(out), "was stopped") {
						t.Errorf("call: %v, %s", err, out)
					}
				})
			}
			if daemon {
				work.Go(func() { scrape(t, url) })
			}
			work.Wait()
			if daemon {
				want := fmt.Sprintf(`sandboxd_violations_total{hint="readOnlyHint",operation="create",tool="look"} %d`, windows*calls)
				if body := scrape(t, url); !strings.Contains(body, want+"\n") {
					t.Errorf("no %s in the metrics", want)
				}
			}
			stop()
			records := map[audit.Type]int{}
			for _, r := range s.records() {
				records[r.Type]++
			}
			want := (windows + 1) * calls
			if records[audit.TypeViolation] != want || records[audit.TypeCall] != want || records[audit.TypeApprove] != 1 {
				t.Errorf("records %v, want %d calls", records, want)
			}
			if code, out, diag := s.run("log", "--verify"); code != 0 || !strings.Contains(out, fmt.Sprintf("checked %d records in ", 2*want+1)) {
				t.Errorf("status %d, %q, %q", code, out, diag)
			}
		})
	}
}

// A daemon is killed. What it answered and what must not be lost (a lie, a change)
// has its record, once; a call that only read has one too, unless it was among the
// last.
func TestKilledDaemon(t *testing.T) {
	s := newShell(t)
	reads, writes := newPackage(t, guest(say(1))), newPackage(t, guest(create(), say(1)))
	url, process, _ := s.started(io.Discard, "MCP at ", "serve", "--http", "127.0.0.1:0", reads, s.named(writes, "writes"))
	client, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(tool string) string {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err != nil {
			t.Fatal(err)
		}
		of, _ := res.Meta[runtime.MetaPrefix+"call"].(map[string]any)
		id, _ := of["id"].(string)
		return id
	}
	var read []string
	for range 20 {
		read = append(read, call("look"))
	}
	calls := func() map[string]int {
		n := map[string]int{}
		for _, r := range s.records() {
			if r.Type == audit.TypeCall {
				n[r.CallID]++
			}
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); len(calls()) < len(read); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("reads are not on record")
		}
	}
	saved, lie, last := call("writes_save"), call("writes_look"), call("look")
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = process.Wait()
	n := calls()
	for _, id := range append(read, saved, lie) {
		if n[id] != 1 {
			t.Errorf("call %s has %d records", id, n[id])
		}
	}
	if n[last] > 1 || len(n)-n[last] != len(read)+2 {
		t.Errorf("the last one has %d records, %d calls in all", n[last], len(n))
	}
	if code, out, diag := s.run("log", "--verify"); code != 0 {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
}

// named gives a package and its tools another name.
func (s *shell) named(dir, name string) string {
	s.t.Helper()
	file := filepath.Join(dir, "tool.yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("name: demo\n"), []byte("name: "+name+"\n"), 1)
	for _, tool := range []string{"save", "look"} {
		b = bytes.Replace(b, []byte("- name: "+tool+"\n"), []byte("- name: "+name+"_"+tool+"\n"), 1)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// window is one server as a host starts it, with a client that calls.
func (s *shell) window(pkg string, calls int) {
	client, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).
		Connect(context.Background(), &mcp.CommandTransport{Command: s.program("serve", "--stdio", pkg)}, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer client.Close()
	for range calls {
		res, err := client.CallTool(context.Background(), &mcp.CallToolParams{Name: "look"})
		if err != nil || !res.IsError {
			s.t.Errorf("a lie was answered with %v, %v", res, err)
		}
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// A window that brings another package under a name that the daemon serves is
// told so.
func TestConflictWithDaemon(t *testing.T) {
	s := newShell(t)
	pkg := newPackage(t, guest(create(), say(1)))
	_, stop := s.daemon(pkg)
	other := newPackage(t, guest(say(1)))
	out, err := s.program("serve", "--stdio", other).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "the running daemon serves it with another digest") {
		t.Errorf("%v, %s", err, out)
	}
	stop()
}

// What the command line allows is allowed after a reload, too.
func TestReloadWithoutAuthentication(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "sandboxd.yaml")
	conf := "packages: [{source: " + newPackage(t, guest(say(1))) + "}]\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := s.daemonAt("0.0.0.0:0", "--without-authentication", "--config", file)
	defer stop()
	url = "http://127.0.0.1" + url[strings.LastIndex(url, ":"):]
	if err := os.WriteFile(file, []byte(conf+"grace: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for body := ""; !strings.Contains(body, `sandboxd_config_reloads_total{result="ok"} 1`+"\n"); time.Sleep(10 * time.Millisecond) {
		body = scrape(t, url)
		if strings.Contains(body, `sandboxd_config_reloads_total{result="error"} 1`+"\n") || time.Now().After(deadline) {
			t.Fatal("the configuration is not taken")
		}
	}
}
