package runtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns has commits wait for an urgent run, for a second at most.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		own := turns.of("alice", nil)
		commit := func() time.Duration {
			began := time.Now()
			release, err := own.commit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			release()
			return time.Since(began)
		}
		release, err := own.urgent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, release)
		if took := commit(); took != 300*time.Millisecond {
			t.Errorf("a commit waited %s", took)
		}
		release, err = own.urgent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := commit(); took != urgentFor {
			t.Errorf("a commit waited %s", took)
		}
		release() // what is over already
		committing, err := own.commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := own.urgent(ctx); !errors.Is(err, cause) {
			t.Errorf("urgent beside a commit: %v", err)
		}
		if _, err := own.commit(ctx); !errors.Is(err, cause) {
			t.Errorf("commit: %v", err)
		}
		committing()
		commit()
	})
}

// TestTurnsApart lets principals wait for each other only where they share a
// folder.
func TestTurnsApart(t *testing.T) {
	turns := newTurns()
	shared := []*folder{nil, {}}
	if turns.of("alice", shared) != turns.of("bob", shared) {
		t.Error("a folder has two turns")
	}
	if turns.of("alice", []*folder{nil}) == turns.of("bob", nil) {
		t.Error("two principals have one turn")
	}
}
