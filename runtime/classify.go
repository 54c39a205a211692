package runtime

import (
	"errors"
	goruntime "runtime"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// asLimit returns the limit that the error stands for, or nil.
func asLimit(err error) error {
	if l, ok := errors.AsType[*LimitError](err); ok {
		return l
	}
	if l, ok := errors.AsType[*volume.LimitError](err); ok {
		return &LimitError{Limit: l.Resource}
	}
	if l, ok := errors.AsType[*kv.LimitError](err); ok {
		return &LimitError{Limit: l.Resource}
	}
	if l, ok := errors.AsType[*outbox.LimitError](err); ok {
		return &LimitError{Limit: l.Resource}
	}
	if _, ok := errors.AsType[*wasi.OutputLimitError](err); ok {
		return &LimitError{Limit: "output"}
	}
	if f, ok := errors.AsType[*hostengine.FuelError](err); ok {
		return &LimitError{Limit: fuelLimit, Most: int64(f.Limit)}
	}
	if stackOverflow(err) {
		return &LimitError{Limit: "stack", Err: err}
	}
	return nil
}

// stackOverflow reports whether the engine stopped the guest for its stack.
// wazero keeps the sentinel in an internal package, so the first line of the
// text is all there is; a test holds it against the pinned version.
func stackOverflow(err error) bool {
	if err == nil {
		return false
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(line, "wasm error: ") == "stack overflow"
}

// hostFault returns the error as a fault of the host where a host function
// crashed (the engine hands on a Go run-time error) or had no answer for the guest.
func hostFault(err error) error {
	if h, ok := errors.AsType[*wasi.HostError](err); ok {
		return &HostFault{h.Err}
	}
	if _, ok := errors.AsType[goruntime.Error](err); ok {
		return &HostFault{err}
	}
	return nil
}
