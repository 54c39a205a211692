package kv

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Area is the area of the keys of a package.
const Area = "kv"

// Entry is a key, its value and the version of that.
type Entry struct {
	Key     string
	Value   []byte
	Version store.Version
}

// Base is what an overlay lies over: keys as they were at one moment. What it
// returns is not changed by whoever gets it.
type Base interface {
	// Get returns the value of a key and its version; absent: 0 and false.
	Get(ctx context.Context, key string) (value []byte, v store.Version, ok bool, err error)
	// Scan returns the first entries from a key (included) to another (excluded;
	// empty: to the last), sorted by their bytes, at most limit.
	Scan(ctx context.Context, from, to string, limit int) ([]Entry, error)
}

// Stored returns the keys of a space as a snapshot has them.
func Stored(s store.Snapshot, space store.Space) *StoredKeys { return &StoredKeys{s, space} }

// Nothing returns keys of which there are none.
func Nothing() Base { return nothing{} }

type nothing struct{}

func (nothing) Get(context.Context, string) ([]byte, store.Version, bool, error) {
	return nil, 0, false, nil
}

func (nothing) Scan(context.Context, string, string, int) ([]Entry, error) { return nil, nil }

// StoredKeys are the keys of a space as a snapshot has them.
type StoredKeys struct {
	snapshot store.Snapshot
	space    store.Space
}

// Get is that of [Base].
func (b *StoredKeys) Get(ctx context.Context, key string) (value []byte, v store.Version, ok bool, err error) {
	list, err := b.snapshot.Get(ctx, store.Key{Space: b.space, Name: StoreName(key)})
	if err != nil || len(list) == 0 || list[0].Version == 0 {
		return nil, 0, false, err
	}
	return list[0].Value, list[0].Version, true, nil
}

// Scan is that of [Base].
func (b *StoredKeys) Scan(ctx context.Context, from, to string, limit int) ([]Entry, error) {
	if to != "" && from >= to || limit <= 0 {
		return nil, nil
	}
	found, err := b.snapshot.Scan(ctx, storeRange(b.space, from, to), limit)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, len(found))
	for i, e := range found {
		key, err := KeyOf(e.Name)
		if err != nil {
			return nil, err
		}
		list[i] = Entry{key, e.Value, e.Version}
	}
	return list, nil
}

func storeRange(space store.Space, from, to string) store.Range {
	return store.Range{Space: space, From: StoreName(from), To: StoreName(to)}
}
