package capabilities

import (
	"slices"
	"strings"
	"sync"
)

// What a guest causes, the host pays for: a call's record lists so many distinct
// denials and violations, with objects of so many bytes. All are counted.
const (
	maxDenials    = 64
	maxViolations = 64
	maxObject     = 4096
)

// Ledger judges the attempts of one call under its grant and records what it
// refuses before the guest hears of it. What is recorded is never taken back.
// It is safe for concurrent use.
type Ledger struct {
	grant  Grant
	notify Notify

	mu         sync.Mutex
	violations []Violation
	denials    []Denial
	seen       map[Denial]struct{} // nil: none yet
	denied     map[Capability]int  // nil: none yet
}

// Notify receives each distinct violation and denial as it is recorded,
// before the guest is stopped or told. Nil functions are not called.
type Notify struct {
	Violation func(Violation)
	Denial    func(Denial)
}

// NewLedger returns the empty ledger of a call that holds the grant.
func NewLedger(g Grant, n Notify) *Ledger {
	return &Ledger{grant: g, notify: n}
}

// Grant returns the authority of the call.
func (l *Ledger) Grant() Grant { return l.grant }

// Attempt decides on an attempt. It returns nil when it is allowed, a
// [*Violation] when the claim excludes it, and an [Errno] when it is denied;
// the last two are in the record when it returns. In [Report] mode a violation
// is recorded and the guest is not stopped for it.
func (l *Ledger) Attempt(a Attempt) error {
	v := l.grant.Decide(a)
	switch v.Decision {
	case Allow:
		return nil
	case Violate:
		err := l.Violate(Violation{Hint: v.Hint, Operation: a.Operation, Object: a.Object, Phase: PhaseOperation})
		if l.grant.Mode != Report {
			return err
		}
		return l.runOn(a)
	case Deny:
	}
	return l.Deny(Denial{Capability: v.Capability, Operation: a.Operation, Object: a.Object, Errno: v.Errno})
}

// runOn says how a call goes on past a violation in [Report] mode: what it does
// to volumes, granted keys and the outbox stays in its transaction, which is
// dropped; nothing else is carried out.
func (l *Ledger) runOn(a Attempt) error {
	switch a.Operation {
	case OpPut, OpDelete, OpAppend, OpIncrement:
		if l.grant.KV != NoAccess {
			return nil
		}
		return EACCES
	case OpSend:
		return nil
	case OpRead, OpWrite, OpTruncate, OpCreate, OpMkdir, OpRmdir, OpUnlink, OpRename, OpSetSize, OpSetTimes,
		OpHTTP, OpSQL, OpSocket, OpCommit, OpReplay:
	}
	if a.Volume != "" {
		return nil
	}
	return ECONNREFUSED
}

// Violate records a violation and returns it as an error.
func (l *Ledger) Violate(v Violation) error {
	v.Object = clip(v.Object)
	l.mu.Lock()
	fresh := len(l.violations) < maxViolations && !slices.Contains(l.violations, v)
	if fresh {
		l.violations = append(l.violations, v)
	}
	l.mu.Unlock()
	if fresh && l.notify.Violation != nil {
		l.notify.Violation(v)
	}
	return &v
}

// Deny records a denial and returns its errno as an error.
func (l *Ledger) Deny(d Denial) error {
	d.Object = clip(d.Object)
	l.mu.Lock()
	if l.seen == nil {
		l.seen, l.denied = map[Denial]struct{}{}, map[Capability]int{}
	}
	l.denied[d.Capability]++
	_, known := l.seen[d]
	fresh := !known && len(l.denials) < maxDenials
	if fresh {
		l.seen[d] = struct{}{}
		l.denials = append(l.denials, d)
	}
	l.mu.Unlock()
	if fresh && l.notify.Denial != nil {
		l.notify.Denial(d)
	}
	return d.Errno
}

// clip cuts what a guest named to what a record holds.
func clip(object string) string {
	if len(object) <= maxObject {
		return object
	}
	return strings.ToValidUTF8(object[:maxObject], "") + "…"
}

// Violations returns the distinct violations so far, at most 64, first one
// first.
func (l *Ledger) Violations() []Violation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Violation{}, l.violations...)
}

// Denials returns the distinct denials so far, at most 64, first one first.
func (l *Ledger) Denials() []Denial {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Denial{}, l.denials...)
}

// Denied returns how many attempts were denied, by capability.
func (l *Ledger) Denied() map[Capability]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[Capability]int, len(l.denied))
	for c, n := range l.denied {
		m[c] = n
	}
	return m
}
