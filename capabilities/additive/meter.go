package additive

import (
	"context"
	"errors"
)

// errComplex ends a judgement that would take too much.
var errComplex = errors.New("too complex to judge")

const (
	effort    = 64       // how many times each byte may be looked at, on average
	spare     = 64 << 20 // what small files may cost besides
	pollEvery = 1 << 20  // bytes between looks at the context
)

// meter counts what a comparison costs, in bytes looked at, and holds what
// ended it. A comparison that is told false by anything asks it why.
type meter struct {
	ctx  context.Context
	left int64
	poll int64
	err  error
}

func newMeter(ctx context.Context, bytes int64) *meter {
	m := &meter{ctx: ctx, left: spare + effort*bytes}
	m.fail(ctx.Err())
	return m
}

// charge takes a cost, and reports whether to go on.
func (m *meter) charge(n int64) bool {
	if m.err != nil {
		return false
	}
	m.left -= n
	if m.left < 0 {
		m.err = errComplex
		return false
	}
	if m.poll += n; m.poll > pollEvery {
		m.poll = 0
		m.err = m.ctx.Err()
	}
	return m.err == nil
}

// fail ends the comparison; the first reason stays.
func (m *meter) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}
