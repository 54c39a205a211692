package wasi

import (
	"context"
	"io"
	goruntime "runtime"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
)

const procExitName = "proc_exit"

// procExit stops the guest with an [*ExitError]. It does not return.
func procExit(_ context.Context, p *Process, _ memory, a []uint64) errno {
	p.raise(&ExitError{Code: uint32(a[0])})
	return success
}

// procRaise: the host has no signals.
func procRaise(context.Context, *Process, memory, []uint64) errno { return eNOSYS }

func schedYield(context.Context, *Process, memory, []uint64) errno {
	goruntime.Gosched()
	return success
}

// randomGet fills the guest's buffer.
func randomGet(ctx context.Context, p *Process, m memory, a []uint64) errno {
	b, ok := m.bytes(low(a[0]), low(a[1]))
	if !ok {
		return eFAULT
	}
	for piece := range slices.Chunk(b, maxPiece) {
		p.check(ctx)
		if _, err := io.ReadFull(p.random, piece); err != nil {
			return eIO
		}
	}
	return success
}

// sock is every socket function, whatever descriptor it names: trying is what
// is judged. There are no sockets.
func sock(_ context.Context, p *Process, _ memory, _ []uint64) errno {
	err := p.ledger.Attempt(capabilities.Attempt{Operation: capabilities.OpSocket, Object: "socket"})
	if err == nil {
		return eNOTSUP
	}
	return p.result(err)
}
