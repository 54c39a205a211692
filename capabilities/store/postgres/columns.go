package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// headSize is how much of a name is in an index, of whose entries PostgreSQL
// takes 2704 bytes at most.
const headSize = 2048

// spaceID returns the hash that stands for a space.
func spaceID(s store.Space) []byte {
	h := sha256.New()
	for _, part := range []string{s.Principal, s.Package, s.Area} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// cut returns a name as it is sorted: what is in the index and the rest.
func cut(name string) (head, tail []byte) {
	n := min(len(name), headSize)
	return []byte(name[:n]), []byte(name[n:])
}

// mark returns what tells names apart that have the same head.
func mark(tail []byte) []byte {
	if len(tail) == 0 {
		return []byte{}
	}
	sum := sha256.Sum256(tail)
	return sum[:]
}

// keys are the columns of keys.
type keys struct {
	ids                map[store.Space][]byte
	space, head, marks [][]byte
}

func newKeys(size int) *keys {
	return &keys{
		ids:   map[store.Space][]byte{},
		space: make([][]byte, 0, size), head: make([][]byte, 0, size), marks: make([][]byte, 0, size),
	}
}

// add adds a key and returns the rest of its name.
func (k *keys) add(key store.Key) (tail []byte) {
	id, ok := k.ids[key.Space]
	if !ok {
		id = spaceID(key.Space)
		k.ids[key.Space] = id
	}
	head, tail := cut(key.Name)
	k.space, k.head, k.marks = append(k.space, id), append(k.head, head), append(k.marks, mark(tail))
	return tail
}

// expiry returns a time in microseconds, rounded down: a key is absent from
// then on. 0: never.
func expiry(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	if us := t.UnixMicro(); us != 0 {
		return us
	}
	return -1
}
