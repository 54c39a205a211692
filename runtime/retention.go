package runtime

import "time"

// Retention says how long what calls leave beside their effects is kept. The zero
// value of a field is its default.
type Retention struct {
	Undo        time.Duration // what undoing a call takes; default: 7 days
	UndoCall    int64         // of one call, in bytes of old contents; default: 256 MiB
	Idempotency time.Duration // results under idempotency keys; default: 24 h
}

// orDefault returns the retention with the defaults filled in.
func (r Retention) orDefault() Retention {
	if r.Undo <= 0 {
		r.Undo = 7 * 24 * time.Hour
	}
	if r.UndoCall <= 0 {
		r.UndoCall = 256 << 20
	}
	if r.Idempotency <= 0 {
		r.Idempotency = 24 * time.Hour
	}
	return r
}
