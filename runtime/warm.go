package runtime

import (
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// idleFat is how long an instance that waits keeps the pages that calls wrote,
	// which spare the next call copying them from the image again.
	idleFat = 30 * time.Second
	// idleFew is how long more than one instance of a package waits for a call.
	idleFew = time.Minute
	// idleOne is how long the last one does.
	idleOne = 10 * time.Minute
	// trimEvery is how often that is looked at.
	trimEvery = 10 * time.Second
	// instanceBytes is what an instance takes besides its memory and what the stacks of
	// its functions have grown to: the engine's own objects (measured: 206 KiB for a
	// guest in Go, most of it for its table of functions).
	instanceBytes = 208 << 10
)

// warm are the instances of all packages that wait for a call. They take no more
// than a budget together: the one that has waited longest goes first.
type warm struct {
	discard func(*Instance)
	idled   func(pkg string, change int)
	most    uint64
	stop    chan struct{}
	stopped chan struct{}

	mu             sync.Mutex
	held           uint64
	oldest, newest *Instance
	shelves        map[*shelf]struct{}
}

// shelf are the instances of one module, and state, that wait.
type shelf struct {
	warm   *warm
	pkg    string
	end    func() error // see warm.shelf
	closed bool
	idle   []*Instance // the longest idle first
}

// newWarm returns an empty store, which the caller closes.
func newWarm(most uint64, discard func(*Instance), idled func(string, int)) *warm {
	w := &warm{
		discard: discard, idled: idled, most: most,
		stop: make(chan struct{}), stopped: make(chan struct{}), shelves: map[*shelf]struct{}{},
	}
	go w.keep()
	return w
}

// keep trims until the store is closed.
func (w *warm) keep() {
	defer close(w.stopped)
	t := time.NewTicker(trimEvery)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			w.trim(now)
		case <-w.stop:
			return
		}
	}
}

// close discards all that wait, and gives up what instances would be made of. Nothing
// is kept afterwards.
func (w *warm) close() error {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	<-w.stopped
	w.mu.Lock()
	open := make([]*shelf, 0, len(w.shelves))
	for s := range w.shelves {
		open = append(open, s)
	}
	w.mu.Unlock()
	var err error
	for _, s := range open {
		err = errors.Join(err, s.end())
		s.close()
	}
	return err
}

// shelf returns a place for instances of a package to wait in. end is done when all
// packages end at once: it stops whoever makes instances ahead, waits for that, and gives
// up what they are made of. It may be done twice.
func (w *warm) shelf(pkg string, end func() error) *shelf {
	s := &shelf{warm: w, pkg: pkg, end: end}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shelves[s] = struct{}{}
	return s
}

// take returns the instance that has waited shortest, nil where none does: its
// memory is the likeliest to be in the caches of the processor.
func (s *shelf) take() *Instance {
	w := s.warm
	w.mu.Lock()
	var i *Instance
	if n := len(s.idle); n > 0 {
		i = s.idle[n-1]
		w.unlink(i)
		s.idle[n-1], s.idle = nil, s.idle[:n-1]
	}
	w.mu.Unlock()
	if i != nil {
		w.idled(s.pkg, -1)
	}
	return i
}

// waiting returns how many wait.
func (s *shelf) waiting() int {
	s.warm.mu.Lock()
	defer s.warm.mu.Unlock()
	return len(s.idle)
}

// put lets an instance wait for its next call, and discards what is then too much.
func (s *shelf) put(i *Instance) {
	w := s.warm
	w.mu.Lock()
	// Under the lock: trim may still look at what it saw before a call took it.
	i.since, i.bytes, i.shelf, i.lean = time.Now(), i.memory.Private()+i.stacks+i.kept+instanceBytes, s, false
	if s.closed {
		w.mu.Unlock()
		w.discard(i)
		return
	}
	s.idle = append(s.idle, i)
	w.link(i)
	var much []*Instance
	for w.held > w.most && w.oldest != nil {
		much = append(much, w.oldest)
		w.drop(w.oldest)
	}
	w.mu.Unlock()
	w.idled(s.pkg, 1)
	w.gone(much)
}

// close discards those that wait, and all that come.
func (s *shelf) close() {
	w := s.warm
	w.mu.Lock()
	s.closed = true
	delete(w.shelves, s)
	idle := slices.Clone(s.idle)
	for _, i := range idle {
		w.drop(i)
	}
	w.mu.Unlock()
	w.gone(idle)
}

// trim discards those that have waited for too long, and takes from those that have
// waited for a while what they have besides the image.
func (w *warm) trim(now time.Time) {
	w.mu.Lock()
	var old, fat []*Instance
	for s := range w.shelves {
		for _, i := range s.idle {
			if i.pool != nil && !i.lean && now.Sub(i.since) >= idleFat {
				fat = append(fat, i)
			}
		}
		for len(s.idle) > 0 && now.Sub(s.idle[0].since) >= s.patience() {
			old = append(old, s.idle[0])
			w.drop(s.idle[0])
		}
	}
	w.mu.Unlock()
	w.gone(old)
	for _, i := range fat {
		if !w.slim(i, now) {
			w.gone([]*Instance{i})
		}
	}
}

// slim gives back what an instance has besides the image, if it still waits and no
// call had it meanwhile. A call that comes now waits for that. It returns false where
// that failed, and the instance does not wait any more.
func (w *warm) slim(i *Instance, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(i.since) < idleFat || !slices.Contains(i.shelf.idle, i) {
		return true
	}
	if i.memory.Trim() != nil {
		w.drop(i)
		return false
	}
	i.lean = true
	w.held -= i.bytes
	i.bytes = i.memory.Private() + i.stacks + i.kept + instanceBytes
	w.held += i.bytes
	return true
}

// patience is how long the one that has waited longest may wait.
func (s *shelf) patience() time.Duration {
	if len(s.idle) > 1 {
		return idleFew
	}
	return idleOne
}

// drop takes an instance from its shelf.
func (w *warm) drop(i *Instance) {
	k := slices.Index(i.shelf.idle, i)
	i.shelf.idle = slices.Delete(i.shelf.idle, k, k+1)
	w.unlink(i)
}

// gone discards what was dropped.
func (w *warm) gone(list []*Instance) {
	for _, i := range list {
		w.idled(i.shelf.pkg, -1)
		w.discard(i)
	}
}

// link puts an instance at the end of those that wait.
func (w *warm) link(i *Instance) {
	i.older, i.newer = w.newest, nil
	if w.newest != nil {
		w.newest.newer = i
	} else {
		w.oldest = i
	}
	w.newest = i
	w.held += i.bytes
}

// unlink takes it from there.
func (w *warm) unlink(i *Instance) {
	if i.older != nil {
		i.older.newer = i.newer
	} else {
		w.oldest = i.newer
	}
	if i.newer != nil {
		i.newer.older = i.older
	} else {
		w.newest = i.older
	}
	i.older, i.newer = nil, nil
	w.held -= i.bytes
}
