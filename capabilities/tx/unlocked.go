package tx

import (
	"context"
	"errors"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// errNoUndo: a store that is no Locker was changed.
var errNoUndo = errors.New("volume cannot be changed back")

// unlocked is a store that cannot be locked: what its guards refuse once others
// of its sort were changed makes the commit partial.
type unlocked struct {
	store   volume.Store
	change  *volume.Change
	changed bool
}

func (u *unlocked) Lock(context.Context) error { return nil }

// Check checks what is only read, so that it comes before all changes.
func (u *unlocked) Check(ctx context.Context) error {
	if u.change.Empty() {
		return u.store.Apply(ctx, u.change)
	}
	return nil
}

func (u *unlocked) Publish(ctx context.Context) error {
	if u.change.Empty() {
		return nil
	}
	err := u.store.Apply(ctx, u.change)
	u.changed = err == nil
	return err
}

func (u *unlocked) Undo() error {
	if u.changed {
		return errNoUndo
	}
	return nil
}

func (u *unlocked) Close() {}
