// Command escapes offers tools that try to leave their volume: by paths, by
// links that are there and by links that they make. Each answers with the error
// it got, and with an error of its own where it got through.
package main

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/wasi"
)

// attempt is one way out. try gets the descriptor of the volume; none of the
// tries does harm on a host that lets it through.
type attempt struct {
	name        string
	description string
	writes      bool // declared readOnlyHint false
	try         func(dir wasi.FD) wasi.Errno
}

type none struct{}

// refusal is what a tool answers.
type refusal struct {
	Errno string `json:"errno" description:"the error of WASI preview 1"`
}

// refusals are the errors that say no. Others, ENOENT for example, would tell
// what is outside.
var refusals = []wasi.Errno{wasi.EACCES, wasi.EPERM, wasi.ELOOP, wasi.ENOTCAPABLE}

func (a attempt) tool() sdk.Definition {
	h := func(*sdk.Call, none) (refusal, error) {
		dir, err := wasi.Dir("/data")
		if err != nil {
			return refusal{}, err
		}
		e := a.try(dir)
		if !slices.Contains(refusals, e) {
			return refusal{}, fmt.Errorf("%s: not refused: %v", a.name, e)
		}
		return refusal{e.String()}, nil
	}
	return sdk.Tool(a.name, h, sdk.Description(a.description), sdk.ReadOnly(!a.writes), sdk.OpenWorld(false))
}

func init() {
	for _, a := range slices.Concat(paths, followed, made) {
		sdk.Register(a.tool())
	}
}

func main() { sdk.Main() }
