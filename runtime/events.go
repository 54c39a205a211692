package runtime

import "time"

// What an engine tells its observer apart from calls. A panic there is the
// observer's own.

func (e *Engine) wasReset(pkg, method string, took time.Duration) {
	if f := e.observer.Reset; f != nil {
		safely(func() { f(pkg, method, took) })
	}
}

func (e *Engine) idled(pkg string, change int) {
	if f := e.observer.Idle; f != nil {
		safely(func() { f(pkg, change) })
	}
}

func (e *Engine) hasKind(pkg string, k Kind, why Reason) {
	if f := e.observer.Kind; f != nil {
		safely(func() { f(pkg, k, why) })
	}
}

func safely(f func()) {
	defer func() { _ = recover() }()
	f()
}
