// Command corpus re-creates cases of wrong, disputed and subtle hints from public
// servers, a tool a case, each with the hints that were declared. corpus.json says
// where each is from and how it should end.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// root is where the volume is, scratch the folder that does not outlive a call;
// tests move them.
var (
	root    = "/data"
	scratch = "/tmp"
)

func in(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }

func main() { sdk.Main() }

type none struct{}

// define declares a tool with the hints that its original declares: T, F or - for
// each of readOnly, destructive, idempotent and openWorld.
func define[In any](name, hints, description string, h func(*sdk.Call, In) (string, error)) sdk.Definition {
	opts := []sdk.Option{sdk.Description(description)}
	for i, set := range []func(bool) sdk.Option{sdk.ReadOnly, sdk.Destructive, sdk.Idempotent, sdk.OpenWorld} {
		switch hints[i] {
		case 'T':
			opts = append(opts, set(true))
		case 'F':
			opts = append(opts, set(false))
		}
	}
	return sdk.Tool(name, h, opts...)
}

// write replaces a file in place, as most programs do: it is emptied and written.
func write(name, text string) error { return os.WriteFile(in(name), []byte(text), 0o644) }

// read returns the text of a file; that of a missing one is empty.
func read(name string) (string, error) {
	b, err := os.ReadFile(in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// add appends a line to a file, which is made if need be.
func add(name, line string) error {
	f, err := os.OpenFile(in(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// swap writes a new file beside the old one and renames it over it.
func swap(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(in(name)), ".new-*")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), in(name))
}

// loadJSON reads a file into v, which stays as it is where there is none.
func loadJSON(name string, v any) error {
	b, err := os.ReadFile(in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func saveJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return write(name, string(b)+"\n")
}
