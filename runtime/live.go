package runtime

import (
	"errors"
	"sync"
	"time"
)

// errGivenUp: a call had not ended when the host did, and nobody knows how it
// will.
var errGivenUp = errors.New("given up: it did not end although it was stopped")

// live are the calls whose end was not reported yet. The zero value is ready.
type live struct {
	mu    sync.Mutex
	calls map[*reporter]struct{}
}

func (l *live) add(w *reporter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[*reporter]struct{}{}
	}
	l.calls[w] = struct{}{}
}

// remove reports whether the call's end is still to be reported, and leaves that
// to the caller.
func (l *live) remove(w *reporter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.calls[w]
	delete(l.calls, w)
	return there
}

// giveUp reports the end of all calls. It does not wait for longer than most: an
// observer may be what they do not end for.
func (l *live) giveUp(most time.Duration) {
	l.mu.Lock()
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for w := range calls {
			w.gaveUp()
		}
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// gaveUp reports the end of a call whose own goroutine still runs, and leaves
// what is that one's alone.
func (w *reporter) gaveUp() {
	f := w.observer.CallEnd
	if f == nil {
		return
	}
	r := ended(HostError, &HostFault{errGivenUp})
	r.CallID, r.Duration, r.Partial = w.info.ID, time.Since(w.info.Start), true
	r.Output = Explain(w.info.Tool, r)
	apart := &reporter{} // a panic of an observer is on no call's record now
	apart.safely(func() { f(w.info, r) })
}
