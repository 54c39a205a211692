package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
)

// messageTo is in the name of a message.
const messageTo = "/message to "

// isMessage reports whether a change is a new message.
func isMessage(change string) bool {
	return strings.HasPrefix(change, "+") && strings.Contains(change, messageTo)
}

// maxMessages bounds how many messages are looked at.
const maxMessages = 1 << 16

// addStored adds what a store holds of packages: keys and files of managed
// volumes, each with a digest of its value, and messages, each with the call that
// handed it over. A message stays itself while it is delivered.
func (s snapshot) addStored(ctx context.Context, st store.Store) error {
	spaces, err := st.Spaces(ctx)
	if err != nil {
		return err
	}
	now, err := st.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, space := range spaces {
		sort := "key"
		if volume, ok := stored.VolumeOf(space); ok {
			sort = "volume " + volume
		} else if space.Area != kv.Area {
			continue
		}
		if err := s.addSpace(ctx, now, space, sort); err != nil {
			return err
		}
	}
	messages, err := outbox.List(ctx, st, maxMessages)
	if err != nil {
		return err
	}
	for _, m := range messages {
		s[m.Space.Package+messageTo+m.Message.Host+" "+m.Message.Key] = m.CallID
	}
	return nil
}

// addSpace adds the entries of a space, a page at a time.
func (s snapshot) addSpace(ctx context.Context, now store.Snapshot, space store.Space, sort string) error {
	const page = 1000
	for r := (store.Range{Space: space}); ; {
		entries, err := now.Scan(ctx, r, page)
		if err != nil {
			return err
		}
		for _, e := range entries {
			sum := sha256.Sum256(e.Value)
			s[space.Package+"/"+sort+" "+strings.ReplaceAll(e.Name, "\x00", "/")] = hex.EncodeToString(sum[:])
		}
		if len(entries) < page {
			return nil
		}
		r.From = entries[page-1].Name + "\x00"
	}
}
