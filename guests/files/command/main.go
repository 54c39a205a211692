// Command command has the tools of package files, as a command.
package main

import (
	"github.com/sandboxd/sandboxd/guests/files/filetools"
	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() { filetools.Register() }

func main() { sdk.Main() }
