package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// page is how many entries are read at once: records hold bodies, the queue does
// not.
const (
	recordPage = 16
	queuePage  = 1000
)

// Item is a message in the store.
type Item struct {
	Space   store.Space
	Version store.Version // of the record
	Record
}

// Spaces returns the spaces of a store that have messages, in a steady order.
func Spaces(ctx context.Context, s store.Store) ([]store.Space, error) {
	all, err := s.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(all, func(sp store.Space) bool { return sp.Area != store.AreaOutbox })
	slices.SortFunc(list, compareSpaces)
	return list, nil
}

// Queue calls visit with the pending messages of a space, until visit returns
// false.
func Queue(ctx context.Context, s store.Snapshot, space store.Space, visit func(Queued) bool) error {
	r := store.Prefix(space, "\x00")
	return each(ctx, s, r, queuePage, func(e store.Entry) (bool, error) {
		q, err := queued(e)
		return err == nil && visit(q), err
	})
}

// Load returns a message, and false where there is none.
func Load(ctx context.Context, s store.Snapshot, space store.Space, host, key string) (Item, bool, error) {
	list, err := s.Get(ctx, Key(space, host, key))
	if err != nil || len(list) == 0 || list[0].Version == 0 {
		return Item{}, false, err
	}
	r, err := Decode(list[0].Value)
	return Item{space, list[0].Version, r}, err == nil, err
}

// List returns the messages of a store that are known, final ones too, at most
// limit, sorted by space, host and key.
func List(ctx context.Context, s store.Store, limit int) ([]Item, error) {
	var list []Item
	err := inSpaces(ctx, s, func(snap store.Snapshot, space store.Space) error {
		r := store.Range{Space: space, From: store.Prefix(space, "\x00").To}
		return each(ctx, snap, r, recordPage, func(e store.Entry) (bool, error) {
			if len(list) >= limit {
				return false, nil
			}
			rec, err := Decode(e.Value)
			if err == nil {
				list = append(list, Item{space, e.Version, rec})
			}
			return err == nil, err
		})
	})
	return list, err
}

// inSpaces calls do with one snapshot and each space that has messages.
func inSpaces(ctx context.Context, s store.Store, do func(store.Snapshot, store.Space) error) error {
	spaces, err := Spaces(ctx, s)
	if err != nil {
		return err
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, space := range spaces {
		if err := do(snap, space); err != nil {
			return err
		}
	}
	return nil
}

// each calls visit with the entries of a range, a page at a time, until it
// returns false.
func each(ctx context.Context, s store.Snapshot, r store.Range, page int, visit func(store.Entry) (bool, error)) error {
	for {
		list, err := s.Scan(ctx, r, page)
		if err != nil {
			return err
		}
		for _, e := range list {
			if more, err := visit(e); err != nil || !more {
				return err
			}
		}
		if len(list) < page {
			return nil
		}
		r.From = list[len(list)-1].Name + "\x00"
	}
}

func compareSpaces(a, b store.Space) int {
	return cmp.Or(strings.Compare(a.Principal, b.Principal), strings.Compare(a.Package, b.Package))
}
