package tx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// maxOld is how many intents that are done one commit deletes.
const maxOld = 16

// Commits whose answer was lost are asked for again, with pauses that double.
const (
	maxAsked  = 3
	askedWait = 10 * time.Millisecond
)

// storeWait is how long a commit waits for the store to begin with it. Nobody can
// cancel it, and another process may have stopped while it holds the store.
const storeWait = time.Minute

var errWaited = errors.New("store was held by others for a minute; nothing was saved")

// commit is the point from which on the call is saved. What it leaves in folders
// is an intent by then.
func (t *Tx) commit(ctx context.Context, parts []*participant, with store.Commit) error {
	changing, err := t.intend(parts, &with)
	if err == nil {
		err = t.fence(ctx, parts, &with)
	}
	if err == nil {
		err = t.save(ctx, &with)
	}
	switch {
	case errors.Is(err, store.ErrUnknown):
		for _, v := range changing {
			t.intents.doubt(v.folder().Path())
		}
	case err != nil:
		drop(changing)
	}
	if err != nil || len(changing) == 0 {
		return err
	}
	ours, err := t.ours(ctx, changing)
	switch {
	case err != nil: // whoever uses the folders next finds out
		return fmt.Errorf("%w: %w", ErrPending, err)
	case !ours:
		drop(changing)
		return nil
	}
	var errs []error
	for _, v := range changing {
		err := v.staged.Publish(ctx)
		if err == nil {
			err = t.intents.Of(v.folder().Path()).Done(ctx, with.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("volume %q: %w", v.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	return nil
}

// intend adds to a commit what will be done in folders, and returns those.
func (t *Tx) intend(parts []*participant, with *store.Commit) (changing []*participant, err error) {
	for _, v := range parts {
		if v.change.Empty() {
			continue
		}
		l, ok := v.staged.(volume.Intending)
		var intent []byte
		if ok && t.intents != nil {
			intent = l.Intent()
		}
		if intent == nil {
			return changing, fmt.Errorf("volume %q: %w: it keeps no intent", v.Name, ErrVolumes)
		}
		v.intent = store.Write{Key: intentKey(v.folder().Path(), with.ID), Value: intent}
		with.Writes = append(with.Writes, v.intent)
		changing = append(changing, v)
	}
	return changing, nil
}

// fence makes a commit rest on folders as they are now, under their locks: one
// whose answer was lost may still be on its way when the locks are gone, and must
// not arrive once somebody else has changed what it read.
func (t *Tx) fence(ctx context.Context, parts []*participant, with *store.Commit) error {
	if t.intents == nil || len(parts) == 0 {
		return nil // nobody changes folders with this store
	}
	now, err := t.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, v := range parts {
		k := changeKey(v.folder().Path())
		is, err := now.Get(ctx, k)
		if err != nil {
			return err
		}
		with.Guards = append(with.Guards, store.Guard{Key: k, Version: is[0].Version})
		if !v.change.Empty() {
			with.Writes = append(with.Writes, store.Write{Key: k})
		}
	}
	return nil
}

// drop says of staged changes that they are not committed and will not be.
func drop(parts []*participant) {
	for _, v := range parts {
		v.staged.(volume.Intending).Drop()
	}
}

// ours reports whether it is these intents that are committed. A store answers a
// commit as it did before when it has done one of that ID: another process has
// applied the same parked call, say. What was staged here must not come on top.
func (t *Tx) ours(ctx context.Context, changing []*participant) (bool, error) {
	now, err := t.store.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	for _, v := range changing {
		is, err := now.Get(ctx, v.intent.Key)
		switch {
		case err != nil:
			return false, err
		case is[0].Version == 0 || !bytes.Equal(is[0].Value, v.intent.Value):
			return false, nil
		}
	}
	return true, nil
}

// save has the store do a commit, and intents deleted that are done. Where the
// answer was lost it is asked for again. That it is done is then certain;
// any other answer says nothing of the first time.
func (t *Tx) save(ctx context.Context, with *store.Commit) error {
	var old []store.Write
	if t.intents != nil {
		old = t.intents.take(maxOld, with.ID)
		with.Writes = append(with.Writes, old...)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, storeWait, errWaited)
	defer cancel()
	_, err := t.store.Commit(ctx, with)
	for n := 0; n < maxAsked && errors.Is(err, store.ErrUnknown); n++ {
		time.Sleep(askedWait << n)
		if _, again := t.store.Commit(ctx, with); again == nil {
			return nil
		}
	}
	if err != nil && t.intents != nil {
		t.intents.keep(old)
	}
	return err
}
