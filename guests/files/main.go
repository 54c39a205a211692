// Command files has tools on the files of one volume: those of the public file
// server of the Model Context Protocol that read, search and edit text, and echo.
package main

import (
	"github.com/sandboxd/sandboxd/guests/files/filetools"
	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() { filetools.Register() }

func main() { sdk.Main() }
