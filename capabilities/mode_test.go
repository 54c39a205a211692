package capabilities

import (
	"errors"
	"testing"
)

func TestModeText(t *testing.T) {
	for m, want := range map[Mode]string{Enforce: "enforce", Report: "report"} {
		b, err := m.MarshalText()
		var back Mode
		if err != nil || string(b) != want || back.UnmarshalText(b) != nil || back != m {
			t.Errorf("%d: %s, %v, back %d", m, b, err, back)
		}
	}
	var m Mode
	if _, err := Mode(9).MarshalText(); err == nil || m.UnmarshalText([]byte("off")) == nil {
		t.Error("a mode that there is not is written or read")
	}
}

// TestReportRunsOn: what would stop a guest is recorded and, where it stays in
// the call's own overlay, goes on; what would leave the host at once does not.
func TestReportRunsOn(t *testing.T) {
	told := 0
	g := Derive(Effective{ReadOnly: true}, Policy{Mode: Report, Volumes: []VolumeGrant{{"data", "/data", WriteAccess}}})
	l := NewLedger(g, Notify{Violation: func(Violation) { told++ }})
	if err := l.Attempt(Attempt{Operation: OpUnlink, Volume: "data", Object: "/data/a"}); err != nil {
		t.Errorf("unlink: %v", err)
	}
	for op, want := range map[Operation]error{OpSocket: ECONNREFUSED, OpHTTP: ECONNREFUSED, OpSend: nil, OpPut: EACCES} {
		if err := l.Attempt(Attempt{Operation: op, Object: "x"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if n := len(l.Violations()); n != 5 || told != n {
		t.Errorf("%d violations, %d told", n, told)
	}
}

// TestReportKeys: granted keys are changed in the call's own overlay.
func TestReportKeys(t *testing.T) {
	l := NewLedger(Derive(Effective{ReadOnly: true}, Policy{Mode: Report, KV: true}), Notify{})
	if err := l.Attempt(Attempt{Operation: OpPut, Object: "x", Keys: true}); err != nil || len(l.Violations()) != 1 {
		t.Errorf("put: %v, %v", err, l.Violations())
	}
}
