package asyncify

import (
	"errors"
	"fmt"
	"time"
)

// Errors besides [*RunError].
var (
	// ErrOff: wasm-opt is not to be used.
	ErrOff = errors.New("wasm-opt is off; wasmOpt: auto in the configuration uses the one of Binaryen, where it is installed")
	// ErrNotFound: it is not there.
	ErrNotFound = errors.New("wasm-opt is not installed; it is part of Binaryen")
	// ErrSystem: it cannot be confined here.
	ErrSystem = errors.New("wasm-opt is run on Linux only, where its memory can be bounded")
	// ErrModule: the module is one that is not rewritten.
	ErrModule = errors.New("module cannot be left at its first read of standard input")
	// ErrResult: what came of a module is not what asyncify makes of it.
	ErrResult = errors.New("wasm-opt made another module than it should have")
)

// RunError is a run of wasm-opt that did not end well.
type RunError struct {
	Timeout time.Duration // that has passed; 0: it ended before
	Output  string        // what it wrote to standard error, one line of limited length
	Err     error
}

// Error says how it ended.
func (e *RunError) Error() string {
	switch {
	case e.Timeout > 0:
		return fmt.Sprintf("wasm-opt: not done after %s", e.Timeout)
	case e.Output != "":
		return fmt.Sprintf("wasm-opt: %v: %s", e.Err, e.Output)
	}
	return fmt.Sprintf("wasm-opt: %v", e.Err)
}

// Unwrap returns how it ended.
func (e *RunError) Unwrap() error { return e.Err }
