package tx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// participant is a volume that takes part in a commit.
type participant struct {
	Volume
	change *volume.Change
	staged volume.Staged
}

// participants are in the order in which they are changed: last what cannot be
// changed back.
func (t *Tx) participants(p *Prepared) []*participant {
	var parts, last []*participant
	for _, v := range t.volumes {
		c := p.Changes[v.Name]
		switch _, ok := v.Store.(volume.Locker); {
		case c == nil:
		case ok:
			parts = append(parts, &participant{Volume: v, change: c})
		default:
			last = append(last, &participant{Volume: v, change: c})
		}
	}
	return append(parts, last...)
}

// apply stages and checks all volumes before it changes the first, and keeps
// all others out from the checks on.
func (t *Tx) apply(ctx context.Context, p *Prepared) error {
	parts := t.participants(p)
	defer func() {
		for _, v := range slices.Backward(parts) {
			if v.staged != nil {
				v.staged.Close()
			}
		}
	}()
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
	return publish(ctx, parts)
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
