package runtime

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// CallInfo names a call in the events of an [Observer].
type CallInfo struct {
	ID        string
	Principal string // whose call it is; "local" where there is one user
	Package   string
	Tool      string
	Start     time.Time
	Trace     TraceContext // of the caller
}

// Observer receives what happens in an engine. Nil functions are not called.
// Violation and Denial are called before the guest is stopped or told. All are
// called from the goroutine of the call, or of the load, and must not block for
// long. A panic in one ends neither the process nor the call at once; a call that is not committed
// yet ends as a fault of the host.
type Observer struct {
	CallStart func(CallInfo)
	Violation func(CallInfo, capabilities.Violation)
	Denial    func(CallInfo, capabilities.Denial)
	CallEnd   func(CallInfo, *Result)
	// Conflict is called each time a run of a call met a conflict, also where the
	// call is run again.
	Conflict func(CallInfo)
	// Commit is called after a commit that was tried: how long prepare and apply
	// took.
	Commit func(CallInfo, time.Duration)
	// Record returns the records of a call that is about to be committed, for the
	// same commit: the result is as it will be when that succeeds. [Result.Recorded]
	// then says so to CallEnd.
	Record func(CallInfo, *Result) []store.Record
	// Replayed is called when a call was run a second time to see whether it does
	// something further.
	Replayed func(CallInfo, Replay)
	// Sent is called for each thing that left, or will leave, the host.
	Sent func(CallInfo, SendKind)
	// Acquired is called when a call gets an instance of its package, and Released
	// when it is done with it.
	Acquired func(pkg string)
	Released func(pkg string)
	// Reset is called when an instance is as its package's start-up code left it: by
	// which method ("new", "prestarted", or that of [image.Method] by which its memory
	// was put back after a call) and how long that took, for the call.
	Reset func(pkg, method string, took time.Duration)
	// Idle is called when instances that wait for a call come to be more or fewer. It
	// is called from goroutines of the engine, too.
	Idle func(pkg string, change int)
	// Kind is called when a package is loaded, with what its instances are and why no
	// more than that.
	Kind func(pkg string, k Kind, why Reason)
	// Abandoned is called when a commit finds what a killed process left in a
	// volume's folder on the host: stages that hold files of the volume.
	Abandoned func(folder string, stages []string)
	// Compile is called before a module is compiled, or its machine code is read
	// from the cache, and before Options.Rewrite is; done is called when it is ready. A nil done is allowed.
	Compile func(pkg string, bytes int) (done func())
}

// SendKind is a label value of the metric sandboxd_sends_total.
type SendKind string

// The kinds of what is sent.
const (
	SentOutbox SendKind = "outbox" // a message that the commit of its call released
)

// Tee returns an observer that calls each of the given ones in order.
func Tee(os ...Observer) Observer {
	return Observer{
		CallStart: each1(os, func(o Observer) func(CallInfo) { return o.CallStart }),
		Violation: each2(os, func(o Observer) func(CallInfo, capabilities.Violation) { return o.Violation }),
		Denial:    each2(os, func(o Observer) func(CallInfo, capabilities.Denial) { return o.Denial }),
		CallEnd:   each2(os, func(o Observer) func(CallInfo, *Result) { return o.CallEnd }),
		Conflict:  each1(os, func(o Observer) func(CallInfo) { return o.Conflict }),
		Commit:    each2(os, func(o Observer) func(CallInfo, time.Duration) { return o.Commit }),
		Record:    recording(os),
		Replayed:  each2(os, func(o Observer) func(CallInfo, Replay) { return o.Replayed }),
		Sent:      each2(os, func(o Observer) func(CallInfo, SendKind) { return o.Sent }),
		Acquired:  each1(os, func(o Observer) func(string) { return o.Acquired }),
		Released:  each1(os, func(o Observer) func(string) { return o.Released }),
		Reset:     each3(os, func(o Observer) func(string, string, time.Duration) { return o.Reset }),
		Idle:      each2(os, func(o Observer) func(string, int) { return o.Idle }),
		Kind:      each3(os, func(o Observer) func(string, Kind, Reason) { return o.Kind }),
		Abandoned: each2(os, func(o Observer) func(string, []string) { return o.Abandoned }),
		Compile:   compiling(os),
	}
}

func each1[A any](os []Observer, of func(Observer) func(A)) func(A) {
	return func(a A) {
		for _, o := range os {
			if f := of(o); f != nil {
				f(a)
			}
		}
	}
}

func each2[A, B any](os []Observer, of func(Observer) func(A, B)) func(A, B) {
	return func(a A, b B) {
		for _, o := range os {
			if f := of(o); f != nil {
				f(a, b)
			}
		}
	}
}

func each3[A, B, C any](os []Observer, of func(Observer) func(A, B, C)) func(A, B, C) {
	return func(a A, b B, c C) {
		for _, o := range os {
			if f := of(o); f != nil {
				f(a, b, c)
			}
		}
	}
}

func recording(os []Observer) func(CallInfo, *Result) []store.Record {
	return func(c CallInfo, r *Result) (records []store.Record) {
		for _, o := range os {
			if o.Record != nil {
				records = append(records, o.Record(c, r)...)
			}
		}
		return records
	}
}

func compiling(os []Observer) func(string, int) func() {
	return func(pkg string, n int) func() {
		var done []func()
		for _, o := range os {
			if o.Compile == nil {
				continue
			}
			if d := o.Compile(pkg, n); d != nil {
				done = append(done, d)
			}
		}
		return func() {
			for _, d := range done {
				d()
			}
		}
	}
}
