//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// serverUser returns whom the server runs as: nil is the user of the test.
func serverUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("user postgres or nobody: none, and postgresql refuses root")
}

func unprivileged() *syscall.SysProcAttr {
	c, err := serverUser()
	if err != nil || c == nil {
		return nil // give has said so
	}
	return &syscall.SysProcAttr{Credential: c}
}

// give lets the server's user pass through a folder and have the others.
func give(through string, own ...string) error {
	c, err := serverUser()
	if err != nil || c == nil {
		return err
	}
	if err := os.Chmod(through, 0o711); err != nil {
		return err
	}
	for _, path := range own {
		if err := os.Chown(path, int(c.Uid), int(c.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// childrenOf returns the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var children []int
	for line := range strings.Lines(string(out)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}
