package volume

import "sync"

// The resources that a [LimitError] names.
const (
	limitWrites = "writes"
	limitFiles  = "files"
	limitPaths  = "paths"
)

// DefaultSeen is what a call may hold in memory of what it looked at, in bytes:
// room for some 100,000 paths.
const DefaultSeen = 64 << 20

// LimitError says which budget of a call ran out.
type LimitError struct {
	Resource string // "writes" (bytes), "files", or "paths" (names looked at or told of)
}

// Error names the resource.
func (e *LimitError) Error() string { return e.Resource + " limit reached" }

// Budget is how much a call may hold in overlays. The zero value allows
// looking and no change. It is safe for concurrent use; it must not be copied
// once used.
type Budget struct {
	Bytes int64 // bytes held in memory, and by how much files may grow
	Files int64 // files, links and directories made, changed, moved or removed
	Seen  int64 // bytes held to remember paths and listings that were looked at, and to tell of changes; 0: DefaultSeen

	mu   sync.Mutex
	used cost
}

// cost is what a node holds of a budget.
type cost struct {
	bytes int64 // memory
	grown int64 // length of files beyond what the base has; holes cost no memory
	files int64
	seen  int64 // memory for what was looked at, and for paths that a difference names
}

func (c cost) plus(d cost) cost {
	return cost{c.bytes + d.bytes, c.grown + d.grown, c.files + d.files, c.seen + d.seen}
}

func (c cost) negative() cost { return cost{-c.bytes, -c.grown, -c.files, -c.seen} }

// Used returns the bytes of memory and the number of files that the overlays
// of the call hold now.
func (b *Budget) Used() (bytes, files int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used.bytes, b.used.files
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
	left := cost{b.Bytes, b.Bytes, b.Files, seen}.plus(b.used.negative())
	switch { // what is asked for may be so much that a sum would overflow
	case c.bytes > 0 && c.bytes > left.bytes, c.grown > 0 && c.grown > left.grown:
		return &LimitError{Resource: limitWrites}
	case c.files > 0 && c.files > left.files:
		return &LimitError{Resource: limitFiles}
	case c.seen > 0 && c.seen > left.seen:
		return &LimitError{Resource: limitPaths}
	}
	b.used = b.used.plus(c)
	return nil
}

// give returns what take took.
func (b *Budget) give(c cost) {
	// A negative cost is never refused.
	_ = b.take(c.negative())
}
