package runtime

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/undo"
)

// claims holds the call against its tool's claim and, where that is asked for,
// shows what it would leave: what breaks the claim too.
func (j *judgement) claims(ctx context.Context, p *tx.Prepared, v tx.View) error {
	err := j.additive(ctx, p, v)
	if shown := j.preview(ctx, p, v); err == nil {
		err = shown
	}
	if err != nil {
		return err
	}
	return j.replay(ctx, p, v)
}

// preview fills in the differences that the call would make.
func (j *judgement) preview(ctx context.Context, p *tx.Prepared, v tx.View) (err error) {
	c := j.call
	if c.show == nil {
		return nil
	}
	keys, err := keyChanges(ctx, c.world.reader, c.keys)
	if err != nil {
		return err
	}
	show := *c.show
	show.Effects, show.KeyName = p.Effects, shownKey
	j.result.Diff, err = undo.Preview(ctx, show, c.world.trees(p, v), keys)
	return err
}

// shownKey returns a key as effects name it.
func shownKey(name string) string {
	key, err := kv.KeyOf(name)
	if err != nil {
		return kv.Show(name)
	}
	return kv.Show(key)
}

// trees are the volumes that a call changes, with the steps that do it.
func (w world) trees(p *tx.Prepared, v tx.View) []undo.Tree {
	var list []undo.Tree
	for _, vol := range w.volumes {
		if c := p.Changes[vol.Name]; c != nil && !c.Empty() {
			list = append(list, undo.Tree{
				Name: vol.Name, Path: vol.Path, Base: v.Base(vol.Name), Result: v.Result(vol.Name), Steps: c.Steps,
			})
		}
	}
	return list
}
