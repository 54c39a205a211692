package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/config"
)

// upkeepEvery is how often the upkeep is due, of all processes together.
const upkeepEvery = 15 * time.Minute

// upkeepKey says when the upkeep was last begun. No principal and no package has
// such a name.
var upkeepKey = store.Key{Space: store.Space{Principal: "_host", Package: "_host", Area: store.AreaUpkeep}, Name: "last"}

// upkeep removes from a store what nobody needs any more.
type upkeep struct {
	store    store.Store
	undoSize int64 // bytes, of one principal's package
	audit    config.Audit
	now      func() time.Time
}

func newUpkeep(s store.Store, c *config.Config) *upkeep {
	return &upkeep{s, c.Keep.UndoSize, c.Audit, time.Now}
}

// begun is the value of the key.
type begun struct {
	At time.Time `json:"at"`
}

// do does the upkeep if it is due, and reports whether it was. Who takes longer
// than until it is due again may meet another, which does no harm.
func (u *upkeep) do(ctx context.Context) (bool, error) {
	now := u.now().Round(0).UTC()
	if due, err := u.claim(ctx, now); err != nil || !due {
		return false, err
	}
	spaces, err := undo.Spaces(ctx, u.store)
	if err != nil {
		return true, err
	}
	var errs []error
	for _, s := range spaces {
		if _, err := undo.Trim(ctx, u.store, s, u.undoSize, now); err != nil {
			errs = append(errs, fmt.Errorf("undo of %s by %s: %w", s.Package, s.Principal, err))
		}
	}
	return true, errors.Join(errors.Join(errs...), u.store.Prune(ctx, store.Prune{Now: now, Records: u.audit.Keep, RecordBytes: u.audit.MaxSize}))
}

// claim reports whether the upkeep is due and this process is the one to do it. A
// time after now is of a clock that was wrong, and what cannot be read is old.
func (u *upkeep) claim(ctx context.Context, now time.Time) (bool, error) {
	snap, err := u.store.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	entries, err := snap.Get(ctx, upkeepKey)
	if err != nil {
		return false, err
	}
	last := entries[0]
	var was begun
	if json.Unmarshal(last.Value, &was) == nil {
		if since := now.Sub(was.At); since >= 0 && since < upkeepEvery {
			return false, nil
		}
	}
	value, err := json.Marshal(begun{now})
	if err != nil {
		return false, err
	}
	_, err = u.store.Commit(ctx, &store.Commit{
		ID: "upkeep/" + rand.Text(), Time: now,
		Guards: []store.Guard{{Key: upkeepKey, Version: last.Version}},
		Writes: []store.Write{{Key: upkeepKey, Value: value}},
	})
	if errors.Is(err, store.ErrConflict) {
		return false, nil // another process does it
	}
	return err == nil, err
}
