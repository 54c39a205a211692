package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// adopt has the kernel give this process the orphans of what it started, so that
// it can wait for them: the processor time of a process counts for those alone
// who waited for it, and bubblewrap does not wait for what it runs.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("orphans cannot be adopted: %w", err)
	}
	return nil
}

// wrapped returns the command under bubblewrap: nothing shared but the file
// system, which is read-only.
func wrapped(bwrap, command string) []string {
	return []string{bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", command}
}

// spawned returns the subject of a process for each call, which reads the
// request from its standard input and answers on its standard output.
func spawned(name string, w work, command ...string) measure.Subject {
	request := w.request()
	return measure.Subject{Name: name, CPU: measure.Self, Call: func(_ context.Context, _, n int) error {
		answer, err := spawn(request, command)
		if err != nil {
			return err
		}
		return w.check(answer, n)
	}}
}

// spawn runs a command in a process group of its own and waits for all that is
// in it.
func spawn(stdin []byte, command []string) ([]byte, error) {
	c := exec.Command(command[0], command[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	_, wrote := io.Copy(in, bytes.NewReader(stdin))
	answer, read := readAll(in, out)
	if err := errors.Join(wrote, read, c.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %w", command[0], err)
	}
	for {
		_, err := syscall.Wait4(-c.Process.Pid, nil, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return answer, nil
		case errors.Is(err, syscall.EINTR), err == nil:
		default:
			return nil, os.NewSyscallError("wait4", err)
		}
	}
}

// readAll ends what the command reads and returns what it wrote.
func readAll(in io.Closer, out io.Reader) ([]byte, error) {
	if err := in.Close(); err != nil {
		return nil, err
	}
	return io.ReadAll(out)
}
