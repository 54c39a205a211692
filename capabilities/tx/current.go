package tx

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Current returns [volume.ErrConflict] or [store.ErrConflict] when what the call
// looked at is no longer as it saw it. A snapshot of the store is one moment, so
// this concerns calls that looked into folders, which others change while they
// run: what such a call answered, or would leave, may come of a mixture of
// states, and is no ground to blame it. It changes nothing.
func (t *Tx) Current(ctx context.Context, p *Prepared) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return ErrDone
	}
	looked := &Prepared{Changes: map[string]*volume.Change{}, Others: p.Others}
	for name, c := range p.Changes {
		looked.Changes[name] = &volume.Change{Guards: c.Guards, Listings: c.Listings}
	}
	parts := t.participants(looked)
	if len(parts) == 0 {
		return nil
	}
	defer closeStaged(parts)
	var guards store.Commit
	if t.store != nil {
		if err := t.enlist(ctx, looked, &guards); err != nil {
			return err
		}
	}
	if err := check(ctx, parts); err != nil {
		return err
	}
	if t.store == nil {
		return nil
	}
	return t.unchanged(ctx, len(parts), guards)
}
