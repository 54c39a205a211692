package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// undoRecord returns what undoing the call takes. It is made once.
func (j *judgement) undoRecord(ctx context.Context) (*undo.Record, error) {
	if j.record != nil {
		return j.record, nil
	}
	c := j.call
	record, err := recordOf(ctx, c.pkg.engine, c.world, c.keys, j.prepared, j.view)
	if err != nil {
		return nil, err
	}
	info := c.report.info
	record.CallID, record.Principal, record.Package, record.Tool = info.ID, info.Principal, info.Package, info.Tool
	record.Time = info.Start.UTC()
	j.record = record
	return record, nil
}

// keep collects what undoing the call takes, in the call's own time: old contents are
// read for it, what has changed meanwhile is a conflict, and a commit cannot be
// cancelled. What was kept for a call that is not committed is pruned.
func (j *judgement) keep(ctx context.Context, p *tx.Prepared, _ tx.View) error {
	if p.Empty() || j.call.dryRun || j.call.world.store == nil {
		return nil
	}
	record, err := j.undoRecord(ctx)
	if err != nil {
		return err
	}
	// To undo a loss that was accepted, what was done since has to be undone first.
	if keep := j.call.pkg.recoverable; keep > 0 {
		record.HoldUntil = j.call.report.info.Start.Add(keep).UTC()
	}
	return nil
}

// recordOf returns the undo record of what was prepared, without what says which
// call it is of.
func recordOf(ctx context.Context, e *Engine, w world, keys *kv.Overlay, p *tx.Prepared, v tx.View) (*undo.Record, error) {
	changes, err := keyChanges(ctx, w.reader, keys)
	if err != nil {
		return nil, err
	}
	record, err := undo.Build(ctx, undo.Options{MaxBytes: e.retain.UndoCall, Blobs: e.store}, w.trees(p, v), changes)
	if err != nil {
		return nil, err
	}
	// Reads come first and are no part of what is taken back.
	record.Tell(slices.DeleteFunc(slices.Clone(p.Effects), func(e capabilities.Effect) bool { return e.Verb == capabilities.Read }))
	for _, effect := range p.Effects {
		if effect.Verb == capabilities.Send && effect.Kind == capabilities.KindOutbox {
			host, _, _ := strings.Cut(effect.Object, "/")
			record.Outbox = append(record.Outbox, host+" "+effect.Detail)
		}
	}
	for i, rv := range record.Volumes {
		record.Volumes[i].Folder, record.Volumes[i].Shared = w.places(rv.Name)
	}
	return record, nil
}

// places says where a volume is: a folder of the host, or a managed volume that
// packages share; neither for one of the package's own.
func (w world) places(name string) (folder, shared string) {
	for _, v := range w.volumes {
		if v.Name != name {
			continue
		}
		if l, ok := v.Store.(volume.Locker); ok {
			return l.Folder().Path(), ""
		}
	}
	return "", w.shared[name]
}

// keyPage is how many keys are asked for at once.
const keyPage = 100

// keyChanges returns what a call did to keys.
func keyChanges(ctx context.Context, reader store.Snapshot, keys *kv.Overlay) ([]undo.KeyChange, error) {
	if keys == nil {
		return nil, nil
	}
	change, err := keys.Change()
	if err != nil {
		return nil, err
	}
	var list []undo.KeyChange
	for part := range slices.Chunk(change.Writes, keyPage) {
		names := make([]store.Key, len(part))
		for i, w := range part {
			names[i] = w.Key
		}
		was, err := reader.Get(ctx, names...)
		if err != nil {
			return nil, err
		}
		for i, w := range part {
			list = append(list, undo.KeyChange{
				Name: w.Name,
				Was:  undo.KeyValue{Exists: was[i].Version != 0, Data: was[i].Value},
				Left: undo.KeyValue{Exists: !w.Delete, Data: w.Value},
			})
		}
	}
	return list, nil
}

// undoKeys are the keys of a transaction by their names in the store.
type undoKeys struct{ o *kv.Overlay }

func (k undoKeys) Get(ctx context.Context, name string) ([]byte, bool, error) {
	key, err := kv.KeyOf(name)
	if err != nil {
		return nil, false, err
	}
	return k.o.Get(ctx, key)
}

func (k undoKeys) Put(ctx context.Context, name string, value []byte) error {
	key, err := kv.KeyOf(name)
	if err != nil {
		return err
	}
	return k.o.Put(ctx, key, value)
}

func (k undoKeys) Delete(ctx context.Context, name string) error {
	key, err := kv.KeyOf(name)
	if err != nil {
		return err
	}
	return k.o.Delete(ctx, key)
}
