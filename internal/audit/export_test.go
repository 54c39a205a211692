package audit

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Follower is Follow, a look at a time.
type Follower struct{ r reader }

// NewFollower returns a follower that has looked at nothing yet.
func NewFollower(ctx context.Context, j store.Journal, each func(Record) error, missed func()) *Follower {
	f := &Follower{reader{journal: j, each: each, missed: missed}}
	if err := f.r.begin(ctx); err != nil {
		panic(err)
	}
	return f
}

// Look hands on what came since the last look.
func (f *Follower) Look(ctx context.Context) error { return f.r.look(ctx) }
