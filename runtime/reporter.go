package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
)

// reporter tells an [Observer] what happens in one call. What panics in an
// observer ends neither the process nor the call at once; it is a fault of the
// host, and the call is not committed: it may be one that is not on record.
type reporter struct {
	observer Observer
	live     *live
	info     CallInfo
	notes    *hostmcp.Notes
	fault    error // of observers, not yet taken
}

// safely calls f and keeps what panics in it.
func (w *reporter) safely(f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			w.fault = errors.Join(w.fault, &HostFault{fmt.Errorf("observer panicked: %v\n%s", fault, debug.Stack())})
		}
	}()
	f()
}

// take returns the faults so far and forgets them.
func (w *reporter) take() error {
	err := w.fault
	w.fault = nil
	return err
}

func (w *reporter) start() {
	w.live.add(w)
	if f := w.observer.CallStart; f != nil {
		w.safely(func() { f(w.info) })
	}
}

func (w *reporter) end(r *Result) {
	if !w.live.remove(w) {
		return // it was given up
	}
	if f := w.observer.CallEnd; f != nil {
		w.safely(func() { f(w.info, r) })
	}
}

func (w *reporter) conflict() {
	if f := w.observer.Conflict; f != nil {
		w.safely(func() { f(w.info) })
	}
}

func (w *reporter) commit(took time.Duration) {
	if f := w.observer.Commit; f != nil {
		w.safely(func() { f(w.info, took) })
	}
}

// record returns the records of a call that is about to be committed, and whether
// there is an observer that makes any.
func (w *reporter) record(r *Result) (records []store.Record, recorded bool) {
	f := w.observer.Record
	if f == nil {
		return nil, false
	}
	w.safely(func() { records = f(w.info, r) })
	return records, len(records) > 0
}

func (w *reporter) replayed(v Replay) {
	if f := w.observer.Replayed; f != nil {
		w.safely(func() { f(w.info, v) })
	}
}

func (w *reporter) sent(k SendKind) {
	if f := w.observer.Sent; f != nil {
		w.safely(func() { f(w.info, k) })
	}
}

// apart returns a reporter for another run of the call's guest: of the call only
// what its instance costs is told.
func (w *reporter) apart() *reporter {
	return &reporter{
		observer: Observer{Acquired: w.observer.Acquired, Released: w.observer.Released},
		info:     w.info, notes: hostmcp.NewNotes(hostmcp.Receiver{}),
	}
}

func (w *reporter) acquired() {
	if f := w.observer.Acquired; f != nil {
		w.safely(func() { f(w.info.Package) })
	}
}

func (w *reporter) released() {
	if f := w.observer.Released; f != nil {
		w.safely(func() { f(w.info.Package) })
	}
}

func (w *reporter) abandoned(folder string, stages []string) {
	if f := w.observer.Abandoned; f != nil {
		w.safely(func() { f(folder, stages) })
	}
}

// ledger returns the functions that a call's ledger notifies.
func (w *reporter) ledger() capabilities.Notify {
	var n capabilities.Notify
	if f := w.observer.Violation; f != nil {
		n.Violation = func(v capabilities.Violation) { w.safely(func() { f(w.info, v) }) }
	}
	if f := w.observer.Denial; f != nil {
		n.Denial = func(d capabilities.Denial) { w.safely(func() { f(w.info, d) }) }
	}
	return n
}
