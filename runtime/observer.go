package runtime

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// CallInfo names a call in the events of an [Observer].
type CallInfo struct {
	ID        string
	Principal string // whose call it is; "local" where there is one user
	Package   string
	Tool      string
	Start     time.Time
}

// Observer receives what happens in an engine. Nil functions are not called.
// Violation and Denial are called before the guest is stopped or told; all are
// called from the goroutine of the call and must not block for long.
type Observer struct {
	CallStart func(CallInfo)
	Violation func(CallInfo, capabilities.Violation)
	Denial    func(CallInfo, capabilities.Denial)
	CallEnd   func(CallInfo, *Result)
	// Abandoned is called when a commit finds what a killed process left in a
	// volume's folder on the host: stages that hold files of the volume.
	Abandoned func(folder string, stages []string)
	// Compile is called before a module is compiled that was not in the cache's
	// reach yet; done is called when it is ready. A nil done is allowed.
	Compile func(pkg string, bytes int) (done func())
}

// Tee returns an observer that calls each of the given ones in order.
func Tee(os ...Observer) Observer {
	return Observer{
		CallStart: func(c CallInfo) {
			for _, o := range os {
				if o.CallStart != nil {
					o.CallStart(c)
				}
			}
		},
		Violation: func(c CallInfo, v capabilities.Violation) {
			for _, o := range os {
				if o.Violation != nil {
					o.Violation(c, v)
				}
			}
		},
		Denial: func(c CallInfo, d capabilities.Denial) {
			for _, o := range os {
				if o.Denial != nil {
					o.Denial(c, d)
				}
			}
		},
		CallEnd: func(c CallInfo, r *Result) {
			for _, o := range os {
				if o.CallEnd != nil {
					o.CallEnd(c, r)
				}
			}
		},
		Abandoned: func(folder string, stages []string) {
			for _, o := range os {
				if o.Abandoned != nil {
					o.Abandoned(folder, stages)
				}
			}
		},
		Compile: func(pkg string, n int) func() {
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
		},
	}
}
