//go:build unix

package pgtest

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"testing"
)

var bin = flag.String("postgres", "", "folder of the programs initdb and postgres, 14 or later; without it nothing is started")

func TestServer(t *testing.T) {
	if *bin == "" {
		t.Skip("-postgres names no folder of programs (Debian: /usr/lib/postgresql/15/bin of apt-get install postgresql)")
	}
	s := Start(t, *bin)
	answers(t, s, true)
	for name, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		t.Run(name, func(t *testing.T) {
			end()
			answers(t, s, false)
			s.Restart()
			answers(t, s, true)
		})
	}
	pid := s.cmd.Process.Pid
	s.Restart()
	if s.cmd.Process.Pid == pid {
		t.Error("a running server was not restarted")
	}
	if got := string(s.Run(nil, "postgres", "--version")); got == "" {
		t.Error("a program says nothing")
	}
}

func answers(t *testing.T, s *Server, want bool) {
	t.Helper()
	c, err := net.Dial("unix", s.Socket())
	if err == nil {
		c.Close()
	}
	if (err == nil) != want {
		t.Fatalf("the server answers %v (%v), want %v", err == nil, err, want)
	}
}

// TestKillIsRough looks for what a server that could clean up would not leave.
func TestKillIsRough(t *testing.T) {
	if *bin == "" {
		t.Skip("-postgres names no folder of programs")
	}
	s := Start(t, *bin)
	children, err := childrenOf(s.cmd.Process.Pid)
	if err != nil || len(children) == 0 {
		t.Fatalf("children: %v, %v", children, err)
	}
	s.Kill()
	if _, err := os.Stat(filepath.Join(s.data, "postmaster.pid")); err != nil {
		t.Errorf("a killed server removed its file: %v", err)
	}
	s.Kill() // of nothing
	s.Stop()
}
