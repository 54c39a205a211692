package tx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Commit applies what was prepared, to all parts or to none, and ends the
// transaction. What with holds is committed with it: records, writes of the host;
// its ID, time and more. A call that only read, with nothing to be committed with
// it, costs no commit of the store; what it read is checked all the same. A commit
// cannot be cancelled; for a store that others hold it waits a minute.
//
// It returns [volume.ErrConflict] or [store.ErrConflict] when a guard no longer
// holds: nothing was changed, and the call has to be run again. [store.ErrUnknown]
// says that nobody can tell yet whether the call is saved: running it again could
// do it twice. Once the store has committed, a folder that cannot be changed gives [ErrPending]: the call is saved,
// and the folder is changed before it is read again. Without a store it
// returns [ErrPartial] when one volume could not be changed and another one not be
// changed back, and [volume.ErrTorn] when one was changed in part; these two may
// come together and match no other error. With [ErrNotPrepared] and [ErrVolumes]
// the transaction goes on.
func (t *Tx) Commit(ctx context.Context, p *Prepared, with store.Commit) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return ErrDone
	case t.broken != nil:
		return t.broken
	case p == nil:
		return ErrNotPrepared
	}
	for name, c := range p.Changes {
		known := slices.ContainsFunc(t.volumes, func(v Mount) bool { return v.Name == name && v.base() != nil })
		if !known || c == nil {
			return fmt.Errorf("%w: %q", ErrVolumes, name)
		}
	}
	if err := p.decode(t.others); err != nil {
		return err
	}
	var err error
	if !p.untouched() || !bare(&with) {
		err = t.apply(context.WithoutCancel(ctx), p, with)
	}
	_ = t.end() // what is committed stays so, whatever closing read files says
	return err
}

// bare reports whether a commit has nothing to demand nor to write.
func bare(c *store.Commit) bool {
	return len(c.Guards)+len(c.Ranges)+len(c.Writes)+len(c.Records) == 0
}

// participant is a volume outside of the store that takes part in a commit.
type participant struct {
	Volume
	change *volume.Change
	staged volume.Staged
	intent store.Write // what publishing it will do
}

// participants are in the order in which they are changed: last what cannot be
// changed back.
func (t *Tx) participants(p *Prepared) []*participant {
	var parts, last []*participant
	for _, v := range t.volumes {
		c := p.Changes[v.Name]
		switch _, ok := v.Store.(volume.Locker); {
		case c == nil || v.Tree != nil || untouched(c):
		case ok:
			parts = append(parts, &participant{Volume: v.Volume, change: c})
		default:
			last = append(last, &participant{Volume: v.Volume, change: c})
		}
	}
	return append(parts, last...)
}

// untouched reports whether the call neither read nor changed a volume: it need
// not wait for those who do.
func untouched(c *volume.Change) bool { return c.Empty() && len(c.Guards) == 0 && len(c.Listings) == 0 }

// apply stages and checks all volumes before it changes the first, and keeps
// all others out from the checks on.
func (t *Tx) apply(ctx context.Context, p *Prepared, with store.Commit) error {
	parts := t.participants(p)
	defer closeStaged(parts)
	if err := t.enlist(ctx, p, &with); err != nil {
		return err
	}
	if err := check(ctx, parts); err != nil {
		return err
	}
	switch {
	case t.store == nil:
		return publish(ctx, parts)
	case p.Empty() && len(with.Writes) == 0 && len(with.Records) == 0:
		return t.unchanged(ctx, len(parts), with)
	}
	return t.commit(ctx, parts, with)
}

// check stages all volumes, locks them in one order, and holds them against their
// guards.
func check(ctx context.Context, parts []*participant) error {
	if len(parts) == 0 {
		return nil
	}
	locks := slices.SortedStableFunc(slices.Values(parts), func(a, b *participant) int {
		return a.folder().Compare(b.folder())
	})
	for _, phase := range []struct {
		parts []*participant
		do    func(*participant) error
	}{
		{parts, func(v *participant) error { return v.stage(ctx) }},
		{locks, func(v *participant) error { return v.staged.Lock(ctx) }},
		{parts, func(v *participant) error { return v.staged.Check(ctx) }},
	} {
		for _, v := range phase.parts {
			if err := phase.do(v); err != nil {
				return fmt.Errorf("volume %q: %w", v.Name, err)
			}
		}
	}
	return nil
}

func closeStaged(parts []*participant) {
	for _, v := range slices.Backward(parts) {
		if v.staged != nil {
			v.staged.Close()
		}
	}
}

// enlist collects what of the call the store keeps.
func (t *Tx) enlist(ctx context.Context, p *Prepared, c *store.Commit) error {
	for _, v := range t.volumes {
		change := p.Changes[v.Name]
		if v.Tree == nil || change == nil {
			continue
		}
		guards, ranges, writes, err := v.Tree.Writes(ctx, change)
		if err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
		c.Guards, c.Ranges, c.Writes = append(c.Guards, guards...), append(c.Ranges, ranges...), append(c.Writes, writes...)
	}
	for _, o := range t.others {
		part := p.Others[o.Name()]
		if part == nil {
			continue
		}
		if err := part.redo.Enlist(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", o.Name(), err)
		}
	}
	if t.store == nil && !bare(c) {
		return fmt.Errorf("%w: no store for them", ErrVolumes)
	}
	return nil
}

// unchanged ends a call that only read. A snapshot is one moment, so what was
// read of the store alone needs no check. Folders are held still by their locks
// now: what was read of both must be true of this one moment.
func (t *Tx) unchanged(ctx context.Context, folders int, with store.Commit) error {
	if folders == 0 || len(with.Guards)+len(with.Ranges) == 0 {
		return nil
	}
	now, err := t.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	return store.Holds(ctx, now, with.Guards, with.Ranges)
}

func (v *participant) stage(ctx context.Context) (err error) {
	l, ok := v.Store.(volume.Locker)
	if !ok {
		v.staged = &unlocked{v.Store, v.change, false}
		return nil
	}
	v.staged, err = l.Stage(ctx, v.change)
	return err
}

// publish changes the volumes, all or none.
func publish(ctx context.Context, parts []*participant) error {
	for i, v := range parts {
		err := v.staged.Publish(ctx)
		if err == nil {
			continue
		}
		var undo []error
		for _, w := range slices.Backward(parts[:i]) {
			if uerr := w.staged.Undo(); uerr != nil {
				undo = append(undo, fmt.Errorf("undo: volume %q: %w", w.Name, uerr))
			}
		}
		return failed(v.Name, err, errors.Join(undo...))
	}
	return nil
}

// failed returns the error of a volume that could not be changed, and of those
// that could not be changed back. When something stays changed the cause is not
// wrapped: a conflict would invite running the call again, on top of that.
func failed(name string, err, undo error) error {
	torn := errors.Is(err, volume.ErrTorn) || errors.Is(undo, volume.ErrTorn)
	if !torn && undo == nil {
		return fmt.Errorf("volume %q: %w", name, err)
	}
	text := fmt.Sprintf("volume %q: %s", name, err.Error())
	if undo != nil {
		text += "; " + undo.Error()
	}
	switch {
	case torn && undo != nil:
		return fmt.Errorf("%w: %w: %s", ErrPartial, volume.ErrTorn, text)
	case torn:
		return fmt.Errorf("%w: %s", volume.ErrTorn, text)
	}
	return fmt.Errorf("%w: %s", ErrPartial, text)
}
