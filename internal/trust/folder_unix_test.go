//go:build unix

package trust

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestPipe: a record that is a pipe is an error and not a wait.
func TestPipe(t *testing.T) {
	s, c := open(t), notes(t)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.file("notes"), 0o600); err != nil {
		t.Skip(err)
	}
	err := s.Precheck(c, Options{})
	if _, ok := errors.AsType[*RecordError](err); !ok {
		t.Error(err)
	}
}
