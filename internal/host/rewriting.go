package host

import (
	"context"
	"path/filepath"

	"github.com/sandboxd/sandboxd/internal/asyncify"
)

// Rewriting returns what makes modules that can be left at their first read of
// standard input, with the program that the configuration names. Where it cannot be
// used, that is told of each package that could do with it.
func Rewriting(program, cache string) func(context.Context, []byte) ([]byte, error) {
	if program == "" {
		return nil
	}
	o := asyncify.Options{Program: program}
	if cache != "" {
		o.Cache = filepath.Join(cache, "asyncify")
	}
	tool, err := asyncify.New(o)
	if err != nil {
		return func(context.Context, []byte) ([]byte, error) { return nil, err }
	}
	return tool.Rewrite
}

// CheckRewriting returns why the program that the configuration names cannot be used,
// without running it. It returns nil where none is to be.
func CheckRewriting(program string) error {
	if program == "" {
		return nil
	}
	_, err := asyncify.New(asyncify.Options{Program: program})
	return err
}
