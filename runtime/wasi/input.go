package wasi

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// AtInput says what becomes of a guest that is about to read standard input for
// the first time. Its arguments have been checked; m is its instance, whose
// functions may be called.
//
// It returns the process that the read is done by, which is what the instance
// serves from then on; it may be the one that the guest had so far. nil: the guest
// is on its way out (Binaryen's asyncify unwinds it): nothing is read, and what the
// function returns to it says nothing. It may also panic with an error, which stops
// the guest.
type AtInput func(ctx context.Context, m api.Module) *Process

// firstInput has the hook decide, and does the read.
func (p *Process) firstInput(ctx context.Context, a []uint64) errno {
	hook := p.atInput
	p.atInput = nil
	next := hook(ctx, p.module)
	if next == nil {
		return success
	}
	next.Enter(ctx)
	return fdRead(ctx, next, next.view(p.module), a)
}

// Untouched returns an error that says what a guest has changed of its process:
// its descriptors are not those that it was started with. Another process of the
// same options could not stand in for this one then.
func (p *Process) Untouched() error {
	own := int(stderr) + len(p.volumes)
	for fd, d := range p.table.slots {
		switch {
		case fd >= own && d != nil:
			return fmt.Errorf("descriptor %d is open", fd)
		case fd >= own:
		case d == nil:
			return fmt.Errorf("descriptor %d was closed", fd)
		case d.flags != 0 || d.dropped != 0 || d.uninherit != 0:
			return fmt.Errorf("flags or rights of descriptor %d were changed", fd)
		case fd < int(stderr) && d.stream != stream(fd+1), fd >= int(stderr) && (d.file == nil || d.file.Volume() != p.volumes[fd-int(stderr)]):
			return fmt.Errorf("descriptor %d was replaced", fd)
		}
	}
	return nil
}
