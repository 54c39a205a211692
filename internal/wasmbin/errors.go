package wasmbin

import (
	"errors"
	"fmt"
)

// ErrComponent is returned for a component (component model), which begins
// with the same four bytes as a core module.
var ErrComponent = errors.New("WebAssembly component: sandboxd needs a core module (wasip1); build for wasm32-wasip1, or leave out the step that makes a component of it")

// ErrFormat is matched under errors.Is by every [*FormatError].
var ErrFormat = errors.New("not a WebAssembly module")

// FormatError is a place where a binary departs from the format.
type FormatError struct {
	Offset  int // in bytes from the start of the module
	Problem string
}

// Error returns one line that names the problem and its place.
func (e *FormatError) Error() string {
	return fmt.Sprintf("WebAssembly module at byte %d: %s", e.Offset, e.Problem)
}

// Is reports whether target is [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// ErrLimit is matched under errors.Is by every [*LimitError].
var ErrLimit = errors.New("WebAssembly module over a limit")

// LimitError is something of which a module declares more than it may have.
type LimitError struct {
	What      string // for example "memory pages" or "table entries"
	Have, Max uint64
	Costly    bool // it takes an engine too long, or too much memory, to compile
}

// Error returns one line that names what it is, how much there is and how much
// there may be.
func (e *LimitError) Error() string {
	if e.Costly {
		return fmt.Sprintf("WebAssembly module is too costly to compile: it has %d %s, at most %d are allowed", e.Have, e.What, e.Max)
	}
	return fmt.Sprintf("WebAssembly module has %d %s, at most %d are allowed", e.Have, e.What, e.Max)
}

// Is reports whether target is [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
