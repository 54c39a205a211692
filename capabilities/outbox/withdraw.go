package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// ErrNotPending: a message is on its way, was delivered, or is not kept any more.
var ErrNotPending = errors.New("message is not pending")

// Withdraw returns what takes a message back that nobody has tried to deliver, for
// a commit. It returns [ErrNotPending] for any other.
func Withdraw(ctx context.Context, s store.Snapshot, space store.Space, host, key string) ([]store.Guard, []store.Write, error) {
	k := Key(space, host, key)
	list, err := s.Get(ctx, k)
	if err != nil {
		return nil, nil, fmt.Errorf("message: %w", err)
	}
	if list[0].Version == 0 {
		return nil, nil, ErrNotPending
	}
	r, err := Decode(list[0].Value)
	switch {
	case err != nil:
		return nil, nil, err
	case r.State != StatePending || r.Attempts > 0 || r.Lease != nil:
		return nil, nil, ErrNotPending
	}
	writes := []store.Write{{Key: k, Delete: true}, {Key: queueKey(space, host, key), Delete: true}}
	return []store.Guard{{Key: k, Version: list[0].Version}}, writes, nil
}
