package runtime

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/runtime/image"
)

// Fate says what becomes of an instance after a call. The zero value discards.
type Fate uint8

// The fates of instances.
const (
	Discard Fate = iota
	Reset
)

// Instances hands out instances of one module, each as it was when it was
// ready for its first call.
type Instances interface {
	// Get returns an instance for one call, which nothing is bound to. Errors of
	// start-up code, where that has to run, are of type [*startError].
	Get(ctx context.Context, s *startUp) (*Instance, error)
	// Put takes an instance back. Reset is for those that can be put back to how
	// they were.
	Put(i *Instance, f Fate)
	// Close discards those that no call has. No call may begin or run.
	Close(ctx context.Context) error
}

// startUp is what start-up code has, where it runs.
type startUp struct {
	stderr io.Writer
	ledger *capabilities.Ledger // judges what it tries, besides what is sealed
	replay bool                 // for the second run of a call: another seed, and another clock
	ahead  time.Duration        // of the wall clock that it sees
	seat   *seat                // on a processor
}

// Instance is a module instance with one slot for the call that it serves.
type Instance struct {
	name        string
	module      api.Module
	memory      *image.Memory
	slot        atomic.Pointer[served]
	exports     exports
	globals     []api.MutableGlobal
	counter     api.MutableGlobal // see hostengine
	seeding     seeding
	preparation *preparation  // nil once it is ready
	began       time.Duration // what the monotonic clock of start-up code showed when it was
	area        uint32        // where the stack of a program is that was left
	log         []byte        // what start-up code wrote, where no call could be told yet

	pool         *pool  // whose state it is put back to; nil: none
	shelf        *shelf // where it waits for its next call; the rest is the shelf's
	older, newer *Instance
	since        time.Time
	bytes        uint64
	stacks       uint64 // bytes, of the functions that calls use
	kept         uint64 // bytes, of what its module declares, besides those of most
	lean         bool   // it has nothing besides the image
}

// exports are the functions that calls use, each with a stack that it keeps, and
// room for arguments and results.
type exports struct {
	start, alloc, call, reseed api.Function
	entered                    api.Function // of a program that was left; nil for others
	stack                      [2]uint64
	stacks                     []reflect.Value // of the engine; see stackOf
}

// serve binds the instance to what it serves now. Its fuel is counted from here, and
// short code comes to no checkpoint.
func (i *Instance) serve(s *served) {
	i.counter.Set(uint64(s.meter.First()))
	i.slot.Store(s)
}

// spent returns the fuel that the guest has spent on what it serves.
func (i *Instance) spent() int64 {
	return int64(i.slot.Load().meter.Spent(int64(i.counter.Get())))
}

// bind makes the instance ready for what calls use.
func (i *Instance) bind(f *factory) {
	i.lookUp(f)
	if f.reactor && f.reseeds {
		i.seeding.prepare(f.limits)
	}
}

// lookUp looks the functions up that calls use.
func (i *Instance) lookUp(f *factory) {
	defer i.exports.watch()
	if !f.reactor {
		i.exports.start = i.module.ExportedFunction("_start")
		if f.leaves {
			i.exports.entered = i.module.ExportedFunction(asyncify.StopRewind)
		}
		return
	}
	i.exports.alloc = i.module.ExportedFunction("sandboxd_alloc")
	i.exports.call = i.module.ExportedFunction("sandboxd_call")
	if f.reseeds {
		i.exports.reseed = i.module.ExportedFunction(reseedExport)
	}
}

// fateOf says whether an instance can be put back after a call that ended so: what
// is not in its state may be what ended it.
func fateOf(o Outcome, err error) Fate {
	if o == HostError || stackOverflow(err) || errors.Is(err, errReseed) {
		return Discard
	}
	return Reset
}

// startError is start-up code that did not end well.
type startError struct {
	phase   string
	err     error // what stopped it, before what the engine says about it
	stopped bool  // the host did
	refused bool  // it asked for more memory than there is
}

func (e *startError) Error() string { return e.phase + ": " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }
