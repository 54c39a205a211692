package runtime

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errClosedInstance: the engine closed an instance, which no call can use any more.
var errClosedInstance = errors.New("instance is closed")

// pool hands out instances that are put back to an image when a call is done with
// them: contents are not kept until the next one.
type pool struct {
	factory *factory
	state   *state
	shelf   *shelf

	mu    sync.Mutex
	again *pool // of another image, for second runs; nil: none was made yet
}

func newPool(f *factory, s *state) *pool {
	return &pool{factory: f, state: s, shelf: f.engine.warm.shelf(f.pkg, s.image.Close)}
}

// Get returns one that waits, or makes one.
func (p *pool) Get(ctx context.Context, s *startUp) (*Instance, error) {
	if s.replay {
		again, err := p.second(ctx, s)
		if err != nil {
			return nil, err
		}
		p = again
	}
	if i := p.shelf.take(); i != nil {
		return i, nil
	}
	i, err := p.factory.restore(ctx, p.state, s)
	if err == nil {
		i.pool = p
	}
	return i, err
}

// second returns the pool of instances that started by another seed and clock.
func (p *pool) second(ctx context.Context, s *startUp) (*pool, error) {
	back := s.seat.away(ctx) // whoever makes it needs a processor
	p.mu.Lock()
	defer p.mu.Unlock()
	back()
	if p.again != nil {
		return p.again, nil
	}
	i, err := p.factory.ready(ctx, s)
	if err != nil {
		return nil, err
	}
	defer p.factory.engine.discard(ctx, i)
	state, err := i.snapshot(p.factory.shape.globals)
	if err != nil {
		return nil, &HostFault{err}
	}
	p.again = newPool(p.factory, state)
	return p.again, nil
}

// Put puts an instance back to its image at once.
func (p *pool) Put(i *Instance, f Fate) {
	p = i.pool
	i.slot.Store(nil)
	switch f {
	case Reset:
		began := time.Now()
		if err := i.reset(p.state); err == nil {
			i.fold(p.factory)
			p.factory.engine.wasReset(p.factory.pkg, string(i.memory.Method()), time.Since(began))
			p.shelf.put(i)
			return
		}
	case Discard:
	}
	p.factory.engine.discard(context.Background(), i)
}

// Close discards the instances that wait, and the images.
func (p *pool) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.again != nil {
		err = p.again.Close(ctx)
	}
	p.shelf.close()
	return errors.Join(err, p.state.image.Close())
}
