// Command honest offers tools that keep what they declare although they look
// as if they did not: they write to scratch, ask for more than they need, try what
// can have no effect, write again what is there.
package main

import (
	"path/filepath"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// root is where the volume is, scratch the folder that does not outlive a
// call; tests move them.
var (
	root    = "/data"
	scratch = "/tmp"
)

func in(name string) string { return filepath.Join(root, name) }

// reader declares a tool that claims to change nothing and to ask nobody.
func reader[In any](name, description string, h func(*sdk.Call, In) (string, error)) sdk.Definition {
	return sdk.Tool(name, h, sdk.Description(description), sdk.ReadOnly(true), sdk.OpenWorld(false))
}

type none struct{}

func main() { sdk.Main() }
