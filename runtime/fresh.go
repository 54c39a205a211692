package runtime

import (
	"context"
	"slices"
	"sync"
	"time"
)

// fresh hands out instances that serve one call each. Those that are made ahead
// spare a call their start-up.
type fresh struct {
	factory *factory
	shelf   *shelf // those that were made ahead; nil: none are
	open    context.Context
	end     context.CancelFunc

	mu       sync.Mutex
	busy     int // instances that calls have
	starting int // instances that are being made ahead
	waiting  []chan *Instance
	work     sync.WaitGroup
}

func newFresh(f *factory, ahead bool) *fresh {
	n := &fresh{factory: f}
	n.open, n.end = context.WithCancel(context.Background())
	if ahead {
		n.shelf = f.engine.warm.shelf(f.pkg, func() error { n.stopAhead(); return nil })
	}
	return n
}

// Get returns an instance that was made ahead, or makes one. The second run of a
// call gets one of its own: its clock is another.
func (n *fresh) Get(ctx context.Context, s *startUp) (*Instance, error) {
	began := time.Now()
	method := methodPrestarted
	i := n.take(ctx, s)
	if i == nil {
		method = methodNew
		var err error
		if i, err = n.factory.ready(ctx, s); err != nil {
			return nil, err
		}
	} else {
		_, _ = s.stderr.Write(i.log) // of a call, which takes what fits
	}
	n.factory.engine.wasReset(n.factory.pkg, method, time.Since(began))
	n.mu.Lock()
	n.busy++
	n.mu.Unlock()
	n.ahead()
	return i, nil
}

// take returns an instance that was made ahead, or is about to be: to wait for that is
// shorter than to begin another. It returns nil where there is none.
func (n *fresh) take(ctx context.Context, s *startUp) *Instance {
	if n.shelf == nil || s.replay {
		return nil
	}
	if i := n.shelf.take(); i != nil {
		return i
	}
	n.mu.Lock()
	if n.starting <= len(n.waiting) {
		n.mu.Unlock()
		return nil
	}
	c := make(chan *Instance, 1)
	n.waiting = append(n.waiting, c)
	n.mu.Unlock()
	defer s.seat.away(ctx)() // it needs a processor
	select {
	case i := <-c:
		return i
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := slices.Index(n.waiting, c); k >= 0 {
		n.waiting = slices.Delete(n.waiting, k, k+1)
		return nil
	}
	return <-c // it came in this moment
}

// ahead has as many instances made ahead as calls run at once.
func (n *fresh) ahead() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shelf == nil || n.open.Err() != nil || n.shelf.waiting()+n.starting >= n.busy {
		return
	}
	n.starting++
	n.work.Go(func() { n.hand(n.makeOne()) })
}

// makeOne makes an instance ahead; nil where its start-up code does not end well:
// that belongs in the record of a call, so the next one tries by itself.
func (n *fresh) makeOne() *Instance {
	ctx, cancel := context.WithTimeout(n.open, n.factory.limits.Timeout)
	defer cancel()
	seat := n.factory.engine.cpus.seat()
	if seat.Take(ctx) != nil {
		return nil
	}
	defer seat.Leave()
	log := &cappedBuffer{limit: int(n.factory.limits.Output)}
	i, err := n.factory.ready(ctx, &startUp{stderr: log, ledger: nobody(), seat: seat})
	if err != nil {
		return nil
	}
	i.log = log.b
	return i
}

// hand gives what came of making one to the call that waits longest, or keeps it.
func (n *fresh) hand(i *Instance) {
	n.mu.Lock()
	n.starting--
	var c chan *Instance
	if len(n.waiting) > n.starting || i != nil && len(n.waiting) > 0 {
		c, n.waiting = n.waiting[0], n.waiting[1:]
	}
	n.mu.Unlock()
	switch {
	case c != nil:
		c <- i
	case i != nil:
		n.shelf.put(i)
	}
}

// Put discards the instance.
func (n *fresh) Put(i *Instance, f Fate) {
	switch f {
	case Discard, Reset: // nothing of it is left for another call
	}
	n.factory.engine.discard(context.Background(), i)
	n.mu.Lock()
	n.busy--
	n.mu.Unlock()
}

// Close discards those that were made ahead, when those that are being made have
// been stopped.
func (n *fresh) Close(context.Context) error {
	n.stopAhead()
	if n.shelf != nil {
		n.shelf.close()
	}
	return nil
}

// stopAhead stops making instances ahead, and returns when none is being made.
func (n *fresh) stopAhead() {
	n.mu.Lock()
	n.end()
	n.mu.Unlock()
	n.work.Wait()
}
