package store

import (
	"testing"
	"time"
)

// TestChainHash: whatever is changed of a record, its hash is another one.
func TestChainHash(t *testing.T) {
	at := time.Unix(1_900_000_000, 123456789)
	prev := Digest{1, 2, 3}
	r := Record{Time: at, Data: []byte(`{"a":1}`)}
	base := ChainHash(prev, "writer", 7, r)
	if want := "3ba974ac0f3c0f95114ac999c4d9064f32f7011f9b145fbac9cc749772f81f04"; base.String() != want {
		t.Errorf("hash %v, want %s: what was written can no longer be verified", base, want)
	}
	if again := ChainHash(prev, "writer", 7, Record{Time: at.In(time.FixedZone("east", 7200)), Data: []byte(`{"a":1}`)}); again != base {
		t.Error("a zone changes the hash of a moment")
	}
	seen := map[Digest]string{base: "the record itself"}
	for what, h := range map[string]Digest{
		"hash before":    ChainHash(Digest{1, 2}, "writer", 7, r),
		"first":          ChainHash(Digest{}, "writer", 7, r),
		"writer":         ChainHash(prev, "write", 7, r),
		"longer writer":  ChainHash(prev, "writer\x00", 7, r),
		"number":         ChainHash(prev, "writer", 8, r),
		"time":           ChainHash(prev, "writer", 7, Record{Time: at.Add(1), Data: r.Data}),
		"data":           ChainHash(prev, "writer", 7, Record{Time: at, Data: []byte(`{"a":2}`)}),
		"shorter data":   ChainHash(prev, "writer", 7, Record{Time: at, Data: []byte(`{"a":1`)}),
		"no data":        ChainHash(prev, "writer", 7, Record{Time: at}),
		"moved boundary": ChainHash(prev, "writer\x00\x00\x00\x00\x00\x00\x00\x07", 7, r),
	} {
		if other, ok := seen[h]; ok {
			t.Errorf("%s: the same hash as %s", what, other)
		}
		seen[h] = what
	}
}
