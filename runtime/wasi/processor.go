package wasi

import "context"

// Processor is the right of one guest to run, where not all may at once. It is
// not safe for concurrent use.
type Processor interface {
	Take(context.Context) error  // waits for it; the error is the cause of the context
	Leave()                      // gives it up; nothing where it is not taken
	Yield(context.Context) error // gives it up and takes it again, where others wait
	Share(context.Context) error // does that where the guest has had it for its turn
}

// Yield lets other guests run, where they wait for it. As Enter does it stops a
// guest whose context has ended, and does not return then.
func (p *Process) Yield(ctx context.Context) {
	if p.processor != nil {
		_ = p.processor.Yield(ctx) // its only error is what Enter looks for
	}
	p.Enter(ctx)
}

// Pause gives up the processor while the process waits for something outside.
// The caller takes it again by resume.
func (p *Process) Pause(ctx context.Context) (resume func()) {
	if p.processor == nil {
		return func() {}
	}
	p.processor.Leave()
	return func() {
		_ = p.processor.Take(ctx) // whose only error is what check looks for, next
	}
}
