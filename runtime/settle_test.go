package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/tool"
)

// failingStore is a volume that cannot be changed.
type failingStore struct {
	volume.Base
	before func()
	err    error
}

func (s failingStore) Apply(context.Context, *volume.Change) error {
	s.before()
	return s.err
}

// TestCommitSaysWhatWentWrong: a fault of the store is told as one, also when
// the deadline has passed meanwhile.
func TestCommitSaysWhatWentWrong(t *testing.T) {
	full := errors.New("disk full")
	for name, c := range map[string]struct {
		err     error
		outcome Outcome
	}{
		"fault":    {full, HostError},
		"torn":     {volume.ErrTorn, HostError},
		"conflict": {volume.ErrConflict, Conflict},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		refusing := failingStore{Base: volume.Mem(), before: cancel, err: c.err}
		x := newExecution(context.Background(), world{volumes: []tx.Volume{{Name: "a", Path: "/a", Store: refusing}}},
			capabilities.NewLedger(capabilities.Grant{}, capabilities.Notify{}), tool.Limits{Writes: 1 << 20, Files: 10})
		o := x.tx.Overlay("a")
		place, err := o.Walk(o.Root(), "new", true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Create(place); err != nil {
			t.Fatal(err)
		}
		prepared, err := x.tx.Prepare(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		committed, outcome, err := x.commit(ctx, prepared, store.Commit{})
		if committed || outcome != c.outcome || !errors.Is(err, c.err) {
			t.Errorf("%s: committed %v, %s, %v", name, committed, outcome, err)
		}
		if err := x.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
