package capabilities

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func readOnly(n Notify) *Ledger {
	return NewLedger(Derive(Effective{ReadOnly: true}, Policy{Volumes: []VolumeGrant{{"data", "/data", WriteAccess}}}), n)
}

func TestLedgerAttempt(t *testing.T) {
	l := readOnly(Notify{})
	if err := l.Attempt(Attempt{Operation: OpRead, Volume: "data", Object: "/data/a"}); err != nil {
		t.Errorf("read: %v", err)
	}
	err := l.Attempt(Attempt{Operation: OpUnlink, Volume: "data", Object: "/data/a"})
	var v *Violation
	if !errors.Is(err, ErrViolation) || !errors.As(err, &v) || v.Hint != ReadOnlyHint || v.Operation != OpUnlink || v.Phase != PhaseOperation {
		t.Errorf("unlink: %v", err)
	}
	if wrapped := fmt.Errorf("call: %w", err); !errors.Is(wrapped, ErrViolation) {
		t.Errorf("wrapped: %v", wrapped)
	}
	err = l.Attempt(Attempt{Operation: OpWrite, Volume: "data", Object: "/data/a", Tentative: true})
	var errno Errno
	if !errors.Is(err, EROFS) || !errors.As(err, &errno) || errno != EROFS || errors.Is(err, ErrViolation) {
		t.Errorf("open for reading and writing: %v", err)
	}
	if n := len(l.Violations()); n != 1 || len(l.Denials()) != 1 || l.Denied()[CapVolumeWrite] != 1 {
		t.Errorf("record: %v %v %v", l.Violations(), l.Denials(), l.Denied())
	}
	if !l.Grant().Claim.ReadOnly {
		t.Errorf("grant: %+v", l.Grant())
	}
}

// TestLedgerRecordsFirst looks at the record from within the notification: the
// event is in it already.
func TestLedgerRecordsFirst(t *testing.T) {
	var l *Ledger
	var order []string
	l = readOnly(Notify{
		Violation: func(v Violation) {
			if got := l.Violations(); len(got) == 0 || got[len(got)-1] != v {
				t.Errorf("told of %+v before it is recorded", v)
			}
			order = append(order, string(v.Operation))
		},
		Denial: func(d Denial) {
			if got := l.Denials(); len(got) == 0 || got[len(got)-1] != d || l.Denied()[d.Capability] == 0 {
				t.Errorf("told of %+v before it is recorded", d)
			}
			order = append(order, string(d.Operation))
		},
	})
	for _, a := range []Attempt{
		{Operation: OpMkdir, Volume: "data", Object: "/data/d"},
		{Operation: OpRead, Volume: "other", Object: "/other/a"},
		{Operation: OpRead, Volume: "other", Object: "/other/a"}, // told once
		{Operation: OpRead, Volume: "data", Object: "/data/a"},   // allowed
		{Operation: OpMkdir, Volume: "data", Object: "/data/d"},  // told once
		{Operation: OpSend},
	} {
		_ = l.Attempt(a)
	}
	if got := fmt.Sprint(order); got != "[mkdir read send]" {
		t.Errorf("told of %s", got)
	}
}

// TestLedgerBounds: a guest that runs on past its violations, or names an
// object of any length, does not fill the host's memory.
func TestLedgerBounds(t *testing.T) {
	l := readOnly(Notify{})
	for i := range 1000 {
		_ = l.Attempt(Attempt{Operation: OpWrite, Volume: "data", Object: fmt.Sprint(i)})
	}
	if n := len(l.Violations()); n != maxViolations {
		t.Errorf("%d violations kept", n)
	}
	long := strings.Repeat("ä", 1<<20)
	_ = l.Attempt(Attempt{Operation: OpRead, Volume: "x", Object: long})
	if got := l.Denials()[0].Object; len(got) > maxObject+len("…") || !utf8.ValidString(got) {
		t.Errorf("object of %d bytes kept", len(got))
	}
}

// TestLedgerCap has a guest that causes many denials: all are counted, few are
// kept.
func TestLedgerCap(t *testing.T) {
	told := 0
	l := readOnly(Notify{Denial: func(Denial) { told++ }})
	const n = 1000
	for i := range n {
		for range 2 {
			if err := l.Attempt(Attempt{Operation: OpRead, Volume: "x", Object: fmt.Sprintf("/x/%d", i)}); !errors.Is(err, EACCES) {
				t.Fatal(err)
			}
		}
	}
	if len(l.Denials()) != maxDenials || told != maxDenials || l.Denied()[CapVolume] != 2*n {
		t.Errorf("%d kept, %d told, %v counted", len(l.Denials()), told, l.Denied())
	}
	for i, d := range l.Denials() {
		if d.Object != fmt.Sprintf("/x/%d", i) {
			t.Fatalf("denial %d is %+v", i, d)
		}
	}
}

// TestLedgerKeeps changes what the ledger returned: the record stays.
func TestLedgerKeeps(t *testing.T) {
	l := readOnly(Notify{})
	_ = l.Violate(Violation{Hint: IdempotentHint, Operation: OpReplay, Object: "/data/a", Phase: PhaseReplay})
	_ = l.Deny(Denial{Capability: CapEnv, Operation: OpRead, Object: "HOME", Errno: ENOENT})
	l.Violations()[0].Object, l.Denials()[0].Object, l.Denied()[CapEnv] = "", "", 0
	if l.Violations()[0].Object != "/data/a" || l.Denials()[0].Object != "HOME" || l.Denied()[CapEnv] != 1 {
		t.Errorf("record: %v %v %v", l.Violations(), l.Denials(), l.Denied())
	}
	var v *Violation
	if err := l.Violate(Violation{Object: "b"}); !errors.As(err, &v) {
		t.Fatal(err)
	}
	v.Object = "changed"
	if l.Violations()[1].Object != "b" {
		t.Error("the returned violation is the recorded one")
	}
	empty := readOnly(Notify{})
	if empty.Violations() == nil || empty.Denials() == nil || empty.Denied() == nil {
		t.Error("an empty record is nil, which JSON writes as null")
	}
}

func TestLedgerConcurrent(t *testing.T) {
	var mu sync.Mutex
	violations, denials := 0, 0
	l := readOnly(Notify{
		Violation: func(Violation) { mu.Lock(); violations++; mu.Unlock() },
		Denial:    func(Denial) { mu.Lock(); denials++; mu.Unlock() },
	})
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				_ = l.Attempt(Attempt{Operation: OpWrite, Volume: "data", Object: fmt.Sprint(w)})
				_ = l.Attempt(Attempt{Operation: OpRead, Volume: "x", Object: fmt.Sprint(i % 10)})
				_, _, _ = l.Violations(), l.Denials(), l.Denied()
			}
		})
	}
	wg.Wait()
	if n := len(l.Violations()); n != workers || violations != n {
		t.Errorf("%d violations, %d told", n, violations)
	}
	if l.Denied()[CapVolume] != workers*each || len(l.Denials()) != 10 || denials != 10 {
		t.Errorf("%v counted, %d kept, %d told", l.Denied(), len(l.Denials()), denials)
	}
}

func TestViolationText(t *testing.T) {
	v := &Violation{Hint: DestructiveHint, Operation: OpCommit, Object: "/data/a\n", Phase: PhaseCommit}
	if got := v.Error(); got != `destructiveHint broken by commit of "/data/a\n"` {
		t.Errorf("%q", got)
	}
	if v.Is(EROFS) || errors.Is(EROFS, ErrViolation) || errors.Is(EROFS, EACCES) {
		t.Error("errors match what they are not")
	}
	b, err := json.Marshal(v)
	var back Violation
	if err != nil || json.Unmarshal(b, &back) != nil || back != *v {
		t.Errorf("%s, %v", b, err)
	}
	d := Denial{Capability: CapSocket, Operation: OpSocket, Object: "a", Errno: ENOTSUP}
	b, err = json.Marshal(d)
	if err != nil || string(b) != `{"capability":"socket","operation":"socket","object":"a","errno":"ENOTSUP"}` {
		t.Errorf("%s, %v", b, err)
	}
}
