package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// Calls of a program whose manifest says reseeds begin at its first read of standard
// input, whatever its instances are: until then it is start-up code, which sees
// the clock of start-up code and has sealed volumes, and from then on it is the call.
// Where the program can also be left and entered there, with asyncify, start-up
// code runs once for all calls.

// areaPages is the memory, in pages, that a program is given to keep its stack in
// while it is left. Nothing is in it any more once it has been entered again.
const areaPages = 4

// What asyncify_get_state returns (Binaryen, src/passes/Asyncify.cpp).
const unwinding = 1

// InputError says why calls of a program that reseeds do not begin at its first read
// of standard input.
type InputError struct {
	Reason Reason
	Err    error
}

// Error returns one line.
func (e *InputError) Error() string {
	return fmt.Sprintf("calls do not begin at the first read of standard input: %s: %v", e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

var (
	// errReached stops a program that was to be looked at up to its first read.
	errReached = errors.New("standard input is read")
	errNoInput = errors.New("it ended before it read")
	errPrinted = errors.New("it printed before")
	errState   = errors.New("its instances have state that cannot be put back")
	errFuel    = errors.New("limits.fuel would be reached earlier")
	errStack   = errors.New("its stack cannot be kept")
)

// reach runs a program up to its first read of standard input, and leaves it there
// where its module is made for that: the next call of _start goes on. Else the
// instance is good for nothing more. It returns an [*InputError] where no call can
// begin there.
func (f *factory) reach(ctx context.Context, i *Instance) error {
	p := i.preparation
	var read bool
	var why error
	p.input = func(ctx context.Context, m api.Module) *wasi.Process {
		read = true
		if why = p.untouched(); why == nil && f.leaves {
			if why = i.unwind(ctx); why == nil {
				return nil
			}
		}
		panic(errReached)
	}
	defer func() { p.input = nil }()
	err := i.exports.start.CallWithStack(ctx, nil)
	stop := p.process.Stop()
	switch _, exited := errors.AsType[*wasi.ExitError](stop); {
	case ctx.Err() != nil, p.clock.Late() != nil:
		return died(ctx, err, stop)
	case why != nil:
		return &InputError{ReasonBeforeInput, why}
	case isSealed(stop):
		return &InputError{ReasonBeforeInput, stop}
	case !read && (err == nil || exited):
		return &InputError{ReasonNoInput, errNoInput}
	case !read:
		return &InputError{ReasonNoInput, died(ctx, err, stop)}
	case f.leaves && err != nil:
		return &InputError{ReasonStack, fmt.Errorf("%w: %w", errStack, died(ctx, err, stop))}
	}
	i.began = p.clock.Monotonic()
	if !f.leaves {
		return nil
	}
	if err := i.rewind(ctx); err != nil {
		return &InputError{ReasonStack, err}
	}
	return nil
}

// atInput does what is to happen at the first read of standard input; by itself, it
// is at its end.
func (p *preparation) atInput(ctx context.Context, m api.Module) *wasi.Process {
	if p.input == nil {
		return p.process
	}
	return p.input(ctx, m)
}

// untouched returns what start-up code has done that another instance would not know
// of: a call gets descriptors of its own, and its output is its own.
func (p *preparation) untouched() error {
	if p.printed {
		return errPrinted
	}
	return p.process.Untouched()
}

// printing remembers that something was printed.
type printing struct{ p *preparation }

func (w printing) Write(b []byte) (int, error) {
	w.p.printed = w.p.printed || len(b) > 0
	return len(b), nil
}

// unwind sends a program, which is in a host function, out of _start. Its stack goes
// to memory that no allocator of the guest knows of:
//
//	area              area+8                        area+areaPages
//	 +---------+-------+-----------------------------+
//	 | current |  end  | frames …                    |
//	 +---------+-------+-----------------------------+
//	  u32       u32
func (i *Instance) unwind(ctx context.Context) error {
	memory := i.module.Memory()
	pages, ok := memory.Grow(areaPages)
	if !ok {
		return fmt.Errorf("%w: there is no memory for it", errStack)
	}
	i.area = pages * pageBytes
	if !memory.WriteUint32Le(i.area, i.area+8) || !memory.WriteUint32Le(i.area+4, i.area+areaPages*pageBytes) {
		return errStack
	}
	return i.transition(ctx, asyncify.StartUnwind, uint64(i.area))
}

// rewind has the next call of _start go on where the program was left.
func (i *Instance) rewind(ctx context.Context) error {
	state, err := i.module.ExportedFunction(asyncify.GetState).Call(ctx)
	if err != nil || state[0] != unwinding {
		return fmt.Errorf("%w: it was not left: %v", errStack, err)
	}
	if err := i.transition(ctx, asyncify.StopUnwind); err != nil {
		return err
	}
	return i.transition(ctx, asyncify.StartRewind, uint64(i.area))
}

func (i *Instance) transition(ctx context.Context, name string, args ...uint64) error {
	if _, err := i.module.ExportedFunction(name).Call(ctx, args...); err != nil {
		return fmt.Errorf("%w: %s: %w", errStack, name, err)
	}
	return nil
}

// processOf returns the process of the call on an instance.
func (c *call) processOf(i *Instance, request []byte) (process *wasi.Process) {
	o := c.streams(request)
	if i.exports.entered != nil {
		// The program has been entered again, and goes on with the read.
		o.AtInput = func(ctx context.Context, _ api.Module) *wasi.Process {
			if err := i.exports.entered.CallWithStack(ctx, nil); err != nil {
				process.Raise(&wasi.HostError{Err: err})
			}
			return process
		}
	}
	return c.process(o)
}

// deliver calls the guest with the request and returns its answer.
func (c *call) deliver(ctx context.Context, i *Instance, process *wasi.Process, request []byte) ([]byte, error) {
	if c.pkg.atInput && i.exports.entered == nil {
		err := c.fromStart(ctx, i, process)
		return c.stdout.b, err
	}
	i.serve(c.serve(process, c.report.notes))
	return c.pkg.invoke(ctx, i, request, &c.stdout)
}

// fromStart runs a program whose calls begin at its first read of standard input, on
// an instance that was not left there: as start-up code up to that read.
func (c *call) fromStart(ctx context.Context, i *Instance, process *wasi.Process) error {
	p := c.pkg.factory.preparation(&c.stderr, c.execution.ledger, &c.startUp)
	defer p.process.Close()
	read := false
	p.input = func(context.Context, api.Module) *wasi.Process {
		if err := p.untouched(); err != nil {
			panic(fmt.Errorf("%w: before it read its request: %w", errAnswer, err))
		}
		read = true
		c.clock.base = p.clock.Monotonic() + callLater
		i.serve(c.serve(process, c.report.notes))
		return process
	}
	i.serve(&served{process: p.process, meter: hostengine.NewMeter(c.execution.limits.Fuel), keys: kv.Sealed(), box: outbox.Sealed()})
	err := i.exports.start.CallWithStack(ctx, nil)
	if stop := p.process.Stop(); stop != nil {
		err = stop
	}
	if _, exited := errors.AsType[*wasi.ExitError](err); !read && (err == nil || exited) {
		return fmt.Errorf("%w: %w", errAnswer, errNoInput)
	}
	return err
}
