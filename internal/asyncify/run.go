package asyncify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/regular"
)

const (
	maxOutput = 64 << 10 // bytes, of each stream
	maxShown  = 300
)

// run runs wasm-opt in a private folder, and returns what it printed. It reads what
// it works on from a pipe, which is not filled before its limits are set.
func (t *Tool) run(ctx context.Context, timeout time.Duration, dir string, in []byte, args ...string) ([]byte, error) {
	cause := &RunError{Timeout: timeout, Err: context.DeadlineExceeded}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, cause)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.options.Program, args...)
	cmd.Dir = dir
	// What a script of Node.js needs to be started; nothing of the host's own.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "LANG=C"}
	var out, said limited
	cmd.Stdout, cmd.Stderr = &out, &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, &RunError{Err: err}
	}
	alone(cmd)
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, &RunError{Err: err}
	}
	err = confine(cmd.Process.Pid, limits{memory: t.options.Memory, cpu: 4 * timeout, file: maxResult})
	if err != nil {
		cancel() // what it is not confined to it is not given
	} else {
		_, err = io.Copy(stdin, bytes.NewReader(in))
		err = errors.Join(err, stdin.Close())
	}
	err = errors.Join(cmd.Wait(), err)
	switch {
	case context.Cause(ctx) == error(cause):
		return nil, cause
	case err != nil:
		return nil, &RunError{Output: oneLine(said.b), Err: err}
	}
	return out.b, nil
}

// result reads what was written.
func result(dir string) ([]byte, error) {
	root, err := regular.Folder(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of wasm-opt: %w", err)
	}
	defer root.Close()
	b, _, err := regular.ReadNoLink(root, "out.wasm", maxResult)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	return b, nil
}

// limited keeps the first bytes of what is written.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxOutput-len(l.b))]...)
	return len(p), nil
}

// oneLine returns text of a program that read what others wrote, for a message.
func oneLine(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > maxShown {
		s = s[:maxShown] + "…"
	}
	return s
}
