package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/memstore"

	"github.com/sandboxd/sandboxd/capabilities"
)

// ends keeps the ends that were reported.
type ends struct {
	mu      sync.Mutex
	results []*Result
}

func (e *ends) observer() Observer {
	return Observer{CallEnd: func(_ CallInfo, r *Result) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.results = append(e.results, r)
	}}
}

func (e *ends) all() []*Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.results
}

// hanging returns an engine with a call that does not end although it is
// stopped, until what is returned is closed: its observer hangs.
func hanging(t *testing.T, o Observer) (e *Engine, p *Package, ended <-chan *Result, release chan struct{}) {
	t.Helper()
	began := make(chan struct{}, 1)
	release = make(chan struct{})
	e, err := New(context.Background(), Options{Store: memstore.New(), State: t.TempDir(), Observer: Tee(o, Observer{Denial: func(CallInfo, capabilities.Denial) {
		began <- struct{}{}
		<-release
	}})})
	if err != nil {
		t.Fatal(err)
	}
	p = mustLoad(t, e, stalls(), Binding{})
	ended = calls(context.Background(), p)
	<-began
	return e, p, ended, release
}

func over(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

// TestCloseKeepsToItsTime: a call that does not end is given up and is on record
// once; it keeps what it needs and ends; closing again waits for it.
func TestCloseKeepsToItsTime(t *testing.T) {
	var seen ends
	e, _, ended, release := hanging(t, seen.observer())
	impatient := errors.New("impatient")
	for name, stop := range map[string]func(context.Context) error{"stop": e.Stop, "close": e.Close} {
		err := stop(over(impatient))
		if r, ok := errors.AsType[*RunningError](err); !ok || r.Calls != 1 || !errors.Is(err, impatient) {
			t.Errorf("%s: %v", name, err)
		}
	}
	given := seen.all()
	if len(given) != 1 || given[0].Outcome != HostError || !errors.Is(given[0].Err, errGivenUp) || !given[0].Partial || given[0].CallID == "" {
		t.Fatalf("on record: %+v", given)
	}
	close(release)
	r := <-ended
	if r.Outcome != Timeout || !errors.Is(r.Err, ErrClosed) || r.Committed || r.CallID != given[0].CallID {
		t.Errorf("ended: %s, %v, committed %v", r.Outcome, r.Err, r.Committed)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if n := len(seen.all()); n != 1 {
		t.Errorf("%d ends on record", n)
	}
}

// TestCloseWaitsForTheRecord: a call has not ended before its end is reported.
func TestCloseWaitsForTheRecord(t *testing.T) {
	reporting, release := make(chan struct{}), make(chan struct{})
	e, err := New(context.Background(), Options{Store: memstore.New(), State: t.TempDir(), Observer: Observer{CallEnd: func(CallInfo, *Result) {
		close(reporting)
		<-release
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ended := calls(context.Background(), mustLoad(t, e, stalls(), Binding{}))
	<-reporting
	if _, ok := errors.AsType[*RunningError](e.Close(over(context.Canceled))); !ok {
		t.Error("closed before the end is on record")
	}
	close(release)
	if r := <-ended; r.Outcome != OK || !r.Committed {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCloseOfAPackageKeepsToItsTime: what its call needs stays until that ends.
func TestCloseOfAPackageKeepsToItsTime(t *testing.T) {
	var seen ends
	e, p, ended, release := hanging(t, seen.observer())
	e.patience = time.Millisecond
	err := p.Close(over(context.Canceled))
	if r, ok := errors.AsType[*RunningError](err); !ok || r.Calls != 1 {
		t.Errorf("close: %v", err)
	}
	close(release)
	if r := <-ended; r.Outcome != Timeout || !errors.Is(r.Err, errPackageClosed) || r.Committed {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if all := seen.all(); len(all) != 1 || all[0].Outcome != Timeout {
		t.Errorf("on record: %+v", all)
	}
}

// TestGivingUpDoesNotWaitForObservers that hang.
func TestGivingUpDoesNotWaitForObservers(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	var l live
	l.add(&reporter{observer: Observer{CallEnd: func(CallInfo, *Result) { <-release }}})
	l.giveUp(time.Millisecond)
	if len(l.calls) > 0 {
		t.Error("a call was not given up")
	}
}
