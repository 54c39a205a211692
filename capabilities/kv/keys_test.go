package kv

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// operations are what a guest may do, each with an effect and without.
var operations = []struct {
	name string
	op   capabilities.Operation
	do   func(t *testing.T, k *Keys) error
	harm bool // it would change something
}{
	{"get", capabilities.OpRead, func(t *testing.T, k *Keys) error { _, _, err := k.Get(t.Context(), "a"); return err }, false},
	{"scan", capabilities.OpRead, func(t *testing.T, k *Keys) error { _, err := k.Scan(t.Context(), "a", "", 9); return err }, false},
	{"put", capabilities.OpPut, func(t *testing.T, k *Keys) error { return k.Put(t.Context(), "a", []byte("x")) }, true},
	{"put new", capabilities.OpPut, func(t *testing.T, k *Keys) error { return k.Put(t.Context(), "new", nil) }, true},
	{"put same", capabilities.OpPut, func(t *testing.T, k *Keys) error { return k.Put(t.Context(), "a", []byte("1")) }, false},
	{"delete", capabilities.OpDelete, func(t *testing.T, k *Keys) error { return k.Delete(t.Context(), "a") }, true},
	{"delete none", capabilities.OpDelete, func(t *testing.T, k *Keys) error { return k.Delete(t.Context(), "none") }, false},
	{"append", capabilities.OpAppend, func(t *testing.T, k *Keys) error { return k.Append(t.Context(), "a", []byte("x")) }, true},
	{"append none", capabilities.OpAppend, func(t *testing.T, k *Keys) error { return k.Append(t.Context(), "a", nil) }, false},
	{"increment", capabilities.OpIncrement, func(t *testing.T, k *Keys) error { _, err := k.Increment(t.Context(), "a", 1); return err }, true},
	{"increment by 0", capabilities.OpIncrement, func(t *testing.T, k *Keys) error { _, err := k.Increment(t.Context(), "a", 0); return err }, false},
}

func keys(t *testing.T, g capabilities.Grant, o Options) (*Keys, *capabilities.Ledger) {
	t.Helper()
	l := capabilities.NewLedger(g, capabilities.Notify{})
	return New(begin(t, fill(t, map[string]string{"a": "1", "text": "x", "max": "9223372036854775807"}), o), l), l
}

// What each operation comes to under each grant.
func TestLaw(t *testing.T) {
	readOnly := capabilities.Effective{ReadOnly: true}
	for _, c := range []struct {
		name          string
		grant         capabilities.Grant
		read, barren  error // looking; a change without an effect
		change        error
		violates      bool
		barrenChanges bool // it cannot be known that there is no effect
	}{
		{"granted", capabilities.Grant{KV: capabilities.WriteAccess}, nil, nil, nil, false, false},
		{"for reading", capabilities.Grant{KV: capabilities.ReadAccess}, nil, nil, capabilities.EROFS, false, false},
		{"none", capabilities.Grant{}, capabilities.EACCES, capabilities.EACCES, capabilities.EACCES, false, false},
		{"read-only", capabilities.Grant{KV: capabilities.ReadAccess, Claim: readOnly}, nil, nil, nil, true, false},
		{"read-only and none", capabilities.Grant{Claim: readOnly}, capabilities.EACCES, capabilities.EACCES, nil, true, true},
		{"read-only, report", capabilities.Grant{Mode: capabilities.Report, KV: capabilities.ReadAccess, Claim: readOnly}, nil, nil, nil, false, false},
	} {
		for _, op := range operations {
			t.Run(c.name+"/"+op.name, func(t *testing.T) {
				k, l := keys(t, c.grant, roomy())
				err := op.do(t, k)
				if v, ok := errors.AsType[*capabilities.Violation](err); ok {
					blind := c.barrenChanges && (strings.HasPrefix(op.name, "put") || strings.HasPrefix(op.name, "delete"))
					if !c.violates || !op.harm && !blind || v.Operation != op.op || v.Hint != capabilities.ReadOnlyHint {
						t.Errorf("got %v", err)
					}
					if len(l.Violations()) != 1 || len(k.overlay.Left()) != 0 {
						t.Errorf("recorded %v, left %v", l.Violations(), k.overlay.Left())
					}
					return
				}
				want := c.barren
				switch {
				case op.op == capabilities.OpRead:
					want = c.read
				case op.harm && c.violates:
					t.Fatalf("got %v, want a violation", err)
				case op.harm:
					want = c.change
				}
				if !errors.Is(err, want) || want != nil && len(l.Denials()) != 1 {
					t.Errorf("got %v, %v, want %v", err, l.Denials(), want)
				}
				if changed := len(k.overlay.Left()) > 0; changed != (op.harm && err == nil) {
					t.Errorf("left %v", k.overlay.Left())
				}
			})
		}
	}
}

// What cannot be done is told before it is judged.
func TestUselessIsNotJudged(t *testing.T) {
	k, l := keys(t, capabilities.Grant{KV: capabilities.ReadAccess, Claim: capabilities.Effective{ReadOnly: true}}, roomy())
	_, notNumber := k.Increment(t.Context(), "text", 1)
	_, overflow := k.Increment(t.Context(), "max", 1)
	for _, c := range []struct{ got, want error }{
		{notNumber, ErrNotNumber},
		{overflow, ErrOverflow},
		{k.Put(t.Context(), "", nil), capabilities.EINVAL},
		{k.Put(t.Context(), strings.Repeat("k", MaxKey+1), nil), capabilities.ENAMETOOLONG},
		{k.Put(t.Context(), "k", make([]byte, MaxValue+1)), capabilities.EFBIG},
		{k.Append(t.Context(), "a", make([]byte, MaxValue)), capabilities.EFBIG},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if len(l.Violations()) != 0 {
		t.Errorf("recorded %v", l.Violations())
	}
}

func TestSealed(t *testing.T) {
	for _, op := range operations {
		s, ok := errors.AsType[*SealedError](op.do(t, Sealed()))
		if !ok || s.Operation != op.op || s.Key == "" {
			t.Errorf("%s: %v", op.name, s)
		}
	}
}

// A space without room is no reason to end the call, and is told to the operator.
func TestFull(t *testing.T) {
	o := roomy()
	o.Quota = store.Usage{Keys: 0, Bytes: 1 << 20}
	k, l := keys(t, capabilities.Grant{KV: capabilities.WriteAccess}, o)
	if err := k.Put(t.Context(), "new", nil); !errors.Is(err, capabilities.ENOSPC) {
		t.Errorf("got %v", err)
	}
	want := capabilities.Denial{Capability: capabilities.CapKV, Operation: capabilities.OpPut, Object: "new", Errno: capabilities.ENOSPC}
	if d := l.Denials(); len(d) != 1 || d[0] != want {
		t.Errorf("denied %v", d)
	}
}

func ExampleShow() {
	fmt.Println(Show("notes/1"), Show("\x00\x01"))
	// Output: notes/1 "\x00\x01"
}
