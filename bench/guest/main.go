// Command guest has the tools that are compared with native ones.
package main

import (
	"os"
	"path"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type echoInput struct {
	Text string `json:"text" description:"what to answer"`
}

type readInput struct {
	Name string `json:"name" description:"the file's name"`
}

func init() {
	sdk.Register(
		sdk.Tool("echo", echo, sdk.Description("Answers with its argument."), sdk.ReadOnly(true), sdk.OpenWorld(false)),
		sdk.Tool("read_file", read, sdk.Description("Answers with a file's content."), sdk.ReadOnly(true), sdk.OpenWorld(false)),
	)
}

func main() { sdk.Main() }

func echo(_ *sdk.Call, in echoInput) (string, error) { return in.Text, nil }

func read(_ *sdk.Call, in readInput) (string, error) {
	b, err := os.ReadFile(path.Join("/data", in.Name))
	return string(b), err
}
