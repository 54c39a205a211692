// Command desk keeps texts in files. Its tools do what they say, or not, by the
// claim that each of them makes.
package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type input struct {
	File    string `json:"file" pattern:"^[a-z.]+$"`
	Text    string `json:"text"`
	Request string `json:"request,omitempty"`
}

func in(name string) string { return filepath.Join("/data", name) }

// put replaces a text.
func put(_ *sdk.Call, q input) (string, error) {
	return "Put.", os.WriteFile(in(q.File), []byte(q.Text+"\n"), 0o644)
}

// add adds a line, and says how many there are.
func add(_ *sdk.Call, q input) (string, error) {
	b, err := os.ReadFile(in(q.File))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text := string(b) + q.Text + "\n"
	return "Lines: " + strconv.Itoa(strings.Count(text, "\n")), os.WriteFile(in(q.File), []byte(text), 0o644)
}

func read(_ *sdk.Call, q struct {
	File string `json:"file"`
},
) (string, error) {
	b, err := os.ReadFile(in(q.File))
	return string(b), err
}

// fail writes and ends in an error.
func fail(_ *sdk.Call, q input) (string, error) {
	if _, err := put(nil, q); err != nil {
		return "", err
	}
	return "", errors.New("no more ink")
}

func init() {
	sdk.Register(
		sdk.Tool("read", read, sdk.ReadOnly(true), sdk.OpenWorld(false)),
		sdk.Tool("put", put, sdk.OpenWorld(false)),
		sdk.Tool("fill", put, sdk.Destructive(false), sdk.OpenWorld(false)),
		sdk.Tool("add", add, sdk.Destructive(false), sdk.OpenWorld(false)),
		sdk.Tool("add_once", add, sdk.Destructive(false), sdk.Idempotent(true), sdk.OpenWorld(false)),
		sdk.Tool("fail", fail, sdk.OpenWorld(false)),
	)
}

func main() { sdk.Main() }
