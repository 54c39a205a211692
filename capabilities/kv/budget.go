package kv

import "sync"

// The resources that a [LimitError] names.
const (
	limitWrites = "writes"
	limitKeys   = "keys"
	limitLooks  = "looks"
)

// DefaultSeen is how much a call may look at, in bytes of what is remembered of
// it: room for some 400,000 keys, or 2,000,000 in ranges.
const DefaultSeen = 64 << 20

// What is remembered of a look takes about so much beside the names. An entry of
// a range is not held; it is read again when the call commits.
const (
	pointCost = 128
	rangeCost = 512
	entryCost = 32
)

// LimitError says which budget of a call ran out. It ends the call.
type LimitError struct {
	Resource string // "writes" (bytes), "keys" (changed), or "looks" (keys and ranges looked at)
}

// Error names the resource.
func (e *LimitError) Error() string { return e.Resource + " limit reached" }

// Budget is how much a call may hold in overlays of keys. The zero value allows
// looking and no change. It is safe for concurrent use; it must not be copied
// once used.
type Budget struct {
	Bytes int64 // bytes of keys and values that the call wrote and holds
	Keys  int64 // keys that the call wrote
	Seen  int64 // bytes for what was looked at; 0: DefaultSeen

	mu   sync.Mutex
	used cost
}

// cost is what is held of a budget.
type cost struct{ bytes, keys, seen int64 }

// Used returns the bytes and the number of keys that the overlays of the call
// hold now.
func (b *Budget) Used() (bytes, keys int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used.bytes, b.used.keys
}

// take adds c to what is used, or returns a [*LimitError] and changes nothing.
// Giving back, with negative costs, always succeeds.
func (b *Budget) take(c cost) error {
	seen := b.Seen
	if seen == 0 {
		seen = DefaultSeen
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case c.bytes > 0 && c.bytes > b.Bytes-b.used.bytes:
		return &LimitError{limitWrites}
	case c.keys > 0 && c.keys > b.Keys-b.used.keys:
		return &LimitError{limitKeys}
	case c.seen > 0 && c.seen > seen-b.used.seen:
		return &LimitError{limitLooks}
	}
	b.used = cost{b.used.bytes + c.bytes, b.used.keys + c.keys, b.used.seen + c.seen}
	return nil
}
