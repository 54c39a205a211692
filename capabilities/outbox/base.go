package outbox

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Base is what was sent before.
type Base interface {
	// Known reports whether there is a message of that host and key.
	Known(ctx context.Context, host, key string) (bool, error)
}

// Stored returns the messages of a space as a snapshot has them.
func Stored(s store.Snapshot, space store.Space) *StoredMessages { return &StoredMessages{s, space} }

// Nothing returns messages of which there are none.
func Nothing() Base { return nothing{} }

type nothing struct{}

func (nothing) Known(context.Context, string, string) (bool, error) { return false, nil }

// StoredMessages are the messages of a space as a snapshot has them.
type StoredMessages struct {
	snapshot store.Snapshot
	space    store.Space
}

// Known is that of [Base].
func (b *StoredMessages) Known(ctx context.Context, host, key string) (bool, error) {
	list, err := b.snapshot.Get(ctx, Key(b.space, host, key))
	return err == nil && len(list) > 0 && list[0].Version != 0, err
}
