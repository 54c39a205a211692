package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// ErrForeign: the file is a database, and none of this package.
var ErrForeign = errors.New("database is not a store of sandboxd: choose another folder")

// SchemaError is a store that a newer program wrote.
type SchemaError struct {
	Path       string
	Have, Know int // versions of the schema
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s: schema %d is newer than schema %d, the newest this program knows: use the program that wrote it, or a newer one", e.Path, e.Have, e.Know)
}

// DamagedError is a file whose content is not what was written.
type DamagedError struct {
	Path string
	Mend string // what can be done
	Err  error  // what was found
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v: %s", e.Path, e.Err, e.Mend)
}

// Unwrap returns what was found.
func (e *DamagedError) Unwrap() error { return e.Err }

const mendDatabase = "stop whoever uses it and restore the folder from a backup, or save what can be read with sqlite3's .recover"

// busy tells whether an error says no more than that another one is at work.
func busy(err error) bool {
	return errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED) || errors.Is(err, sqlite3.PROTOCOL)
}

// told puts what the engine says in the terms of the store.
func (s *Store) told(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB):
		if _, ok := errors.AsType[*DamagedError](err); ok {
			return err
		}
		return &DamagedError{Path: s.path, Mend: mendDatabase, Err: err}
	case errors.Is(err, sqlite3.TOOBIG):
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	if _, ok := errors.AsType[*sqlite3.Error](err); ok {
		return fmt.Errorf("store %s: %w", s.path, err)
	}
	return err
}
