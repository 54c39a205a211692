package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/runtime/hostengine"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// reseedExport gives the random generators of a reactor a new seed.
const reseedExport = "sandboxd_reseed"

// errReseed: a module took no seed.
var errReseed = errors.New(reseedExport)

// seeding is what a reactor has while it takes a seed for the next call: random
// numbers of that call, and nothing else. The call is not delivered yet.
type seeding struct {
	random  borrowed
	seat    borrowedSeat
	clock   clock
	process *wasi.Process
	fuel    uint64
	served  served
}

// borrowed reads what it was lent.
type borrowed struct{ io.Reader }

// borrowedSeat is the processor of the call.
type borrowedSeat struct{ *seat }

func (s *seeding) prepare(l tool.Limits) {
	s.clock, s.fuel = *newStartUpClock(l.Timeout, 0), l.Fuel
	s.begin()
}

// begin gives it a process of its own.
func (s *seeding) begin() {
	s.process = wasi.NewProcess(wasi.Options{Random: &s.random, Clock: &s.clock, Processor: &s.seat})
	s.served = served{process: s.process, keys: kv.Sealed(), box: outbox.Sealed()}
}

// reseed lets the module take a seed from random, so that it shares no random
// numbers with other calls. It is for modules that export how. It runs on the processor
// of seat. After an error the instance is to be discarded.
func (i *Instance) reseed(ctx context.Context, random io.Reader, seat *seat) error {
	s := &i.seeding
	if s.process.Untouched() != nil { // its descriptors would be the next call's
		s.begin()
	}
	s.seat.seat, s.random.Reader, s.clock.start, s.clock.slept = seat, random, time.Now(), 0
	s.served.meter = hostengine.NewMeter(s.fuel)
	was := i.slot.Load()
	i.serve(&s.served)
	err := i.exports.reseed.CallWithStack(ctx, i.exports.stack[:1])
	i.slot.Store(was)
	s.random.Reader, s.seat.seat = nil, nil
	if stop := s.process.Stop(); stop != nil {
		err = stop
	}
	if result := int32(i.exports.stack[0]); err == nil && result != 0 {
		err = fmt.Errorf("it returned %d", result)
	}
	if err != nil {
		// Its text alone: what stopped it is not what the call did.
		return fmt.Errorf("%w: %w: %v", errAnswer, errReseed, err)
	}
	return nil
}
