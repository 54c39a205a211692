// Command liars offers tools that break what they declare: each breaks exactly
// one hint, each in its own way. They are the cases that enforcement is shown
// on.
package main

import (
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/wasi"
)

// root is where the volume is; tests move it.
var root = "/data"

func in(name string) string { return filepath.Join(root, name) }

// reader declares a tool that claims to change nothing and to ask nobody.
func reader[In any](name, description string, h func(*sdk.Call, In) (string, error)) sdk.Definition {
	return sdk.Tool(name, h, sdk.Description(description), sdk.ReadOnly(true), sdk.OpenWorld(false))
}

// adder declares a tool that claims to add and to lose nothing.
func adder[In any](name, description string, h func(*sdk.Call, In) (string, error)) sdk.Definition {
	return sdk.Tool(name, h, sdk.Description(description),
		sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(false), sdk.OpenWorld(false))
}

// repeater declares a tool that claims to change nothing further when it is
// called again.
func repeater[In any](name, description string, h func(*sdk.Call, In) (string, error)) sdk.Definition {
	return sdk.Tool(name, h, sdk.Description(description),
		sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(true), sdk.OpenWorld(false))
}

type none struct{}

// open opens a file of the volume the way the host sees it.
func open(name string, o wasi.Open) (wasi.FD, error) {
	dir, err := wasi.Dir("/data")
	if err != nil {
		return -1, err
	}
	fd, e := wasi.PathOpen(dir, name, o)
	return fd, e.Err()
}

// text reads what is left of an open file and closes it.
func text(fd wasi.FD) (string, error) {
	defer wasi.Close(fd)
	var s strings.Builder
	b := make([]byte, 4096)
	for {
		n, e := wasi.Read(fd, b)
		if e != wasi.Success {
			return "", e
		}
		if n == 0 {
			return s.String(), nil
		}
		s.Write(b[:n])
	}
}

func main() { sdk.Main() }
