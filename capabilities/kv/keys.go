package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Keys is the authority of one call over the keys of its package. Its errors are
// a [capabilities.Errno], [ErrNotNumber], [ErrOverflow], a
// [*capabilities.Violation], a [*LimitError], a [*SealedError], or those of the
// base; all but the first three end the call. It is not safe for concurrent use.
type Keys struct {
	overlay *Overlay // nil when sealed
	ledger  *capabilities.Ledger
}

// SealedError is an operation on keys before the request was delivered. The
// guest is stopped: what it read then would be frozen into its image.
type SealedError struct {
	Operation capabilities.Operation
	Key       string // as [Show] shows it; of a range, its first one
}

// Error returns one line that names operation and key.
func (e *SealedError) Error() string {
	return fmt.Sprintf("keys touched before the request: %s of %q", e.Operation, e.Key)
}

// New returns the authority over the keys of an overlay, as the grant of the
// ledger gives it.
func New(o *Overlay, l *capabilities.Ledger) *Keys { return &Keys{overlay: o, ledger: l} }

// visible reports whether the law lets the call look.
func (k *Keys) visible() bool {
	return k.ledger.Grant().Decide(capabilities.Attempt{Operation: capabilities.OpRead, Keys: true}).Decision == capabilities.Allow
}

// Sealed returns keys for code that runs before the request was delivered: every
// operation is a [*SealedError].
func Sealed() *Keys { return &Keys{} }

// Get returns the value of a key and whether there is one.
func (k *Keys) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if err := k.admit(capabilities.OpRead, key); err != nil {
		return nil, false, err
	}
	if err := k.attempt(capabilities.OpRead, key); err != nil {
		return nil, false, err
	}
	return k.overlay.Get(ctx, key)
}

// Scan returns the entries of a range, at most limit; see [Overlay.Scan].
func (k *Keys) Scan(ctx context.Context, from, to string, limit int) ([]Entry, error) {
	if err := k.list(from); err != nil {
		return nil, err
	}
	return k.overlay.Scan(ctx, from, to, limit)
}

// Each calls visit with the entries of a range; see [Overlay.Each].
func (k *Keys) Each(ctx context.Context, from, to string, visit func(Entry) bool) error {
	if err := k.list(from); err != nil {
		return err
	}
	return k.overlay.Each(ctx, from, to, visit)
}

func (k *Keys) list(from string) error {
	if k.overlay == nil {
		return &SealedError{capabilities.OpRead, Show(from)}
	}
	return k.attempt(capabilities.OpRead, from)
}

// Put gives a key a value.
func (k *Keys) Put(ctx context.Context, key string, value []byte) error {
	if err := k.admit(capabilities.OpPut, key); err != nil {
		return err
	}
	if len(value) > MaxValue {
		return capabilities.EFBIG
	}
	old, ok, err := k.look(ctx, key)
	if err != nil || ok && bytes.Equal(old, value) {
		return err
	}
	if err := k.attempt(capabilities.OpPut, key); err != nil {
		return err
	}
	return k.told(k.overlay.Put(ctx, key, value), capabilities.OpPut, key)
}

// Delete removes a key. One that is not there is no error.
func (k *Keys) Delete(ctx context.Context, key string) error {
	if err := k.admit(capabilities.OpDelete, key); err != nil {
		return err
	}
	_, ok, err := k.look(ctx, key)
	if err != nil || k.visible() && !ok {
		return err
	}
	if err := k.attempt(capabilities.OpDelete, key); err != nil {
		return err
	}
	return k.told(k.overlay.Delete(ctx, key), capabilities.OpDelete, key)
}

// Append puts data behind the value of a key, which is made where there is none.
// No data changes nothing.
func (k *Keys) Append(ctx context.Context, key string, data []byte) error {
	if err := k.admit(capabilities.OpAppend, key); err != nil {
		return err
	}
	if len(data) == 0 {
		return k.attempt(capabilities.OpRead, key)
	}
	old, _, err := k.look(ctx, key)
	switch {
	case err != nil:
		return err
	case len(data) > MaxValue-len(old):
		return capabilities.EFBIG
	}
	if err := k.attempt(capabilities.OpAppend, key); err != nil {
		return err
	}
	return k.told(k.overlay.Append(ctx, key, data), capabilities.OpAppend, key)
}

// Increment adds to the number that a key holds and returns the sum; a key that
// is not there counts as 0.
func (k *Keys) Increment(ctx context.Context, key string, by int64) (int64, error) {
	if err := k.admit(capabilities.OpIncrement, key); err != nil {
		return 0, err
	}
	if by == 0 {
		if err := k.attempt(capabilities.OpRead, key); err != nil {
			return 0, err
		}
		return k.overlay.Increment(ctx, key, 0)
	}
	old, ok, err := k.look(ctx, key)
	if err != nil {
		return 0, err
	}
	if k.visible() {
		if _, err := sum(old, ok, by); err != nil {
			return 0, err
		}
	}
	if err := k.attempt(capabilities.OpIncrement, key); err != nil {
		return 0, err
	}
	n, err := k.overlay.Increment(ctx, key, by)
	return n, k.told(err, capabilities.OpIncrement, key)
}

// admit refuses what no keys could do.
func (k *Keys) admit(op capabilities.Operation, key string) error {
	if k.overlay == nil {
		return &SealedError{op, Show(key)}
	}
	return CheckKey(key)
}

// look returns what is at a key, where the call may know.
func (k *Keys) look(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if !k.visible() {
		return nil, false, nil
	}
	return k.overlay.look(ctx, key)
}

// attempt has an operation judged before it is done.
func (k *Keys) attempt(op capabilities.Operation, key string) error {
	return k.ledger.Attempt(capabilities.Attempt{Operation: op, Object: Show(key), Keys: true})
}

// told turns an error of the overlay into what the guest is told.
func (k *Keys) told(err error, op capabilities.Operation, key string) error {
	if !errors.Is(err, ErrFull) {
		return err
	}
	return k.ledger.Deny(capabilities.Denial{
		Capability: capabilities.CapKV, Operation: op, Object: Show(key), Errno: capabilities.ENOSPC,
	})
}
