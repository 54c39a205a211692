//go:build unix

// Package pgtest runs a real PostgreSQL for a test, from its programs and with
// the settings that make commits durable, and ends it as roughly as the test
// wants.
package pgtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	role     = "sandboxd"
	password = "top-secret" // of a server that ends with the test
	patient  = 2 * time.Minute
	settings = `
listen_addresses = ''
unix_socket_permissions = 0777
max_connections = 200
fsync = on
synchronous_commit = on
full_page_writes = on
shared_buffers = 64MB
log_checkpoints = off
`
)

// Server is a PostgreSQL of a test. Its methods fail the test where the server
// does not do as it is told. They are for one goroutine at a time.
type Server struct {
	t      testing.TB
	bin    string
	data   string
	socket string
	cmd    *exec.Cmd
	exit   chan struct{} // closed after the server ended
	log    *journal
}

// Start runs a new PostgreSQL until the test ends, from the programs initdb and
// postgres of the folder bin. It listens on a Unix socket alone. Where the test
// runs as root, which PostgreSQL refuses, the server runs as the user postgres
// or nobody.
func Start(t testing.TB, bin string) *Server {
	t.Helper()
	dir := t.TempDir()
	// A short path: that of a socket has 107 bytes at most.
	socket, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(socket); err != nil {
			t.Error(err)
		}
	})
	s := &Server{t: t, bin: bin, data: filepath.Join(dir, "data"), socket: socket, log: &journal{}}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := give(filepath.Dir(dir), dir, socket, secret); err != nil {
		t.Fatal(err)
	}
	out, err := s.command("initdb", "--pgdata", s.data, "--username", role, "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	config := filepath.Join(s.data, "postgresql.conf")
	text := fmt.Sprintf("%sunix_socket_directories = '%s'\n", settings, socket)
	if err := appendTo(config, text); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.Stop)
	return s
}

// URL returns the address of the server's database, with the password.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Path: "/postgres"}
	u.RawQuery = url.Values{"host": {s.socket}}.Encode()
	return u.String()
}

// Socket returns the path of the Unix socket, for what stands between.
func (s *Server) Socket() string { return filepath.Join(s.socket, ".s.PGSQL.5432") }

// Password returns the password of the URL.
func (s *Server) Password() string { return password }

// Run runs another program of the folder, say pg_dump, as the user of the server
// and with its password, and returns what it prints.
func (s *Server) Run(stdin io.Reader, program string, args ...string) []byte {
	s.t.Helper()
	cmd := s.command(program, args...)
	cmd.Env = append(cmd.Env, "PGPASSWORD="+password, "PGUSER="+role, "PGHOST="+s.socket, "PGDATABASE=postgres")
	var problem bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &problem
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, problem.Bytes())
	}
	return out
}

// Kill ends the server and all its processes at once, as SIGKILL does it.
func (s *Server) Kill() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	// A stopped server has no new children while they are listed.
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	children, err := childrenOf(s.cmd.Process.Pid)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	for _, pid := range children {
		// It may have ended by itself.
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Error(err)
		}
	}
	<-s.exit
	s.cmd = nil
}

// Stop ends the server as its operator does: connections are cut off, what is
// being done is rolled back.
func (s *Server) Stop() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	<-s.exit
	s.cmd = nil
	if s.t.Failed() {
		s.t.Logf("postgres:\n%s", s.log.tail())
	}
}

// Restart starts a server that was killed or stopped on its old data, or stops
// it first. It returns when the server takes connections.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

// start runs the server and waits until it says that it is ready. After a kill,
// memory that a child has not yet left makes it end again at first.
func (s *Server) start() {
	s.t.Helper()
	until := time.Now().Add(patient)
	for {
		err := s.try()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("postgres does not start: %v\n%s", err, s.log.tail())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *Server) try() error {
	cmd := s.command("postgres", "-D", s.data)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready, exit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(exit)
		once := sync.OnceFunc(func() { close(ready) })
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			s.log.add(lines.Text())
			if strings.Contains(lines.Text(), "database system is ready to accept connections") {
				once()
			}
		}
		_ = cmd.Wait() // how it ended is in its log
	}()
	select {
	case <-ready:
		s.cmd, s.exit = cmd, exit
		return nil
	case <-exit:
		return errors.New("ended before it was ready")
	case <-time.After(patient):
		_ = cmd.Process.Kill()
		<-exit
		return errors.New("not ready")
	}
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.socket // one that its user may enter
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	cmd.SysProcAttr = unprivileged()
	return cmd
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// journal is the last of what the server said.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 200 {
		j.lines = j.lines[1:]
	}
	j.lines = append(j.lines, line)
}

func (j *journal) tail() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}
