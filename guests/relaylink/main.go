// Command relaylink is a small messenger with a notebook. Its tools have the names
// and hints of a public server of that kind and keep them: what a tool sends goes
// through the outbox, what it changes although it declares that it only adds is
// among the relaxations that tool.yaml requests.
package main

import (
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func main() { sdk.Main() }

type none struct{}

// hints are those of a tool that is not read-only: all three say so.
type hints struct{ destructive, idempotent, open bool }

func reader[In, Out any](name, description string, h func(*sdk.Call, In) (Out, error)) sdk.Definition {
	return sdk.Tool(name, h, sdk.Description(description),
		sdk.ReadOnly(true), sdk.Idempotent(true), sdk.OpenWorld(false))
}

func writer[In any](name, description string, x hints, h func(*sdk.Call, In) (string, error), more ...sdk.Option) sdk.Definition {
	return sdk.Tool(name, h, append([]sdk.Option{
		sdk.Description(description),
		sdk.ReadOnly(false), sdk.Destructive(x.destructive), sdk.Idempotent(x.idempotent), sdk.OpenWorld(x.open),
	}, more...)...)
}

func missing(kind, id string) error { return fmt.Errorf("%s %s: not found", kind, id) }
