package tx

import (
	"context"
	"encoding/json"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Keys returns a call's keys as a part of its transaction.
func Keys(o *kv.Overlay) Participant { return keys{o} }

type keys struct{ o *kv.Overlay }

func (keys) Name() string { return "keys" }

func (k keys) Effects() (reads, changes []capabilities.Effect) {
	return k.o.Split()
}

func (k keys) Prepare(context.Context) (Redo, error) {
	if k.o.Untouched() {
		return nil, nil
	}
	c, err := k.o.Change()
	if err != nil {
		return nil, err
	}
	return &keysRedo{c}, nil
}

// Decode refuses what is for other keys: whose they are is not for data to say.
func (k keys) Decode(raw []byte) (Redo, error) {
	r := &keysRedo{&kv.Change{}}
	if err := json.Unmarshal(raw, r.Change); err != nil {
		return nil, err
	}
	for _, g := range r.Ranges {
		if g.Space != k.o.Space() {
			return nil, ErrVolumes
		}
	}
	return r, within(k.o.Space(), r.Guards, r.Writes)
}

// within refuses guards and writes outside of a space.
func within(s store.Space, guards []store.Guard, writes []store.Write) error {
	for _, g := range guards {
		if g.Space != s {
			return ErrVolumes
		}
	}
	for _, w := range writes {
		if w.Space != s {
			return ErrVolumes
		}
	}
	return nil
}

type keysRedo struct{ *kv.Change }

func (r *keysRedo) Enlist(_ context.Context, c *store.Commit) error {
	c.Guards, c.Ranges, c.Writes = append(c.Guards, r.Guards...), append(c.Ranges, r.Ranges...), append(c.Writes, r.Writes...)
	return nil
}

// Outbox returns what a call sends as a part of its transaction.
func Outbox(b *outbox.Box) Participant { return messages{b} }

type messages struct{ b *outbox.Box }

func (messages) Name() string { return "outbox" }

func (m messages) Effects() (reads, changes []capabilities.Effect) { return nil, m.b.Effects() }

func (m messages) Prepare(context.Context) (Redo, error) {
	if m.b.Untouched() {
		return nil, nil
	}
	c, err := m.b.Change()
	if err != nil {
		return nil, err
	}
	return &messagesRedo{c}, nil
}

// Decode refuses what is for the messages of others.
func (m messages) Decode(raw []byte) (Redo, error) {
	r := &messagesRedo{&outbox.Change{}}
	if err := json.Unmarshal(raw, r.Change); err != nil {
		return nil, err
	}
	return r, within(m.b.Space(), r.Guards, r.Writes)
}

type messagesRedo struct{ *outbox.Change }

func (r *messagesRedo) Enlist(_ context.Context, c *store.Commit) error {
	c.Guards, c.Writes = append(c.Guards, r.Guards...), append(c.Writes, r.Writes...)
	return nil
}
