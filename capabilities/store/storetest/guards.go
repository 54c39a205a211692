package storetest

import (
	"fmt"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func testingShort() bool { return testing.Short() }

func testVersions(h *harness) {
	seen := map[store.Version]bool{}
	for i := range 20 {
		v := h.write(put("k", fmt.Sprint(i)))
		if seen[v] {
			h.Errorf("version %d was used before", v)
		}
		seen[v] = true
		if e := h.now("k"); e.Version != v {
			h.Errorf("the key has version %d, its commit %d", e.Version, v)
		}
		if i%3 == 0 {
			h.write(del("k"))
		}
	}
	a := h.write(put("k", "same"))
	if b := h.write(put("k", "same")); a == b {
		h.Error("a value written again has the version that it had")
	}
}

func testGuards(h *harness) {
	guarded := func(v store.Version) *store.Commit {
		c := commitOf(put("done", "yes"))
		c.Guards = []store.Guard{{Key: key("other"), Version: 0}, {Key: key("k"), Version: v}}
		return c
	}
	v1 := h.write(put("k", "1"))
	h.commit(guarded(v1))
	h.conflicts(guarded(0), "absence of a key that is there")
	h.conflicts(guarded(v1+1), "a version that never was")
	v2 := h.write(put("k", "2"))
	h.conflicts(guarded(v1), "a version that was replaced")
	h.commit(guarded(v2))
	h.write(del("k"))
	h.conflicts(guarded(v2), "a version that was deleted")
	h.commit(guarded(0))
	v3 := h.write(put("k", "2"))
	h.conflicts(guarded(v2), "a version that was deleted and written again")
	h.commit(guarded(v3))
	c := guarded(v3)
	c.Guards = append(c.Guards, c.Guards...)
	h.commit(c)
	c = guarded(v3)
	c.Guards = append(c.Guards, store.Guard{Key: key("k"), Version: v1})
	h.conflicts(c, "two guards of a key that do not agree")
	// A guard sees the store before the writes of its commit.
	c = commitOf(put("k", "3"))
	c.Guards = []store.Guard{{Key: key("k"), Version: v3}}
	h.commit(c)
	// A guard is of one space.
	elsewhere := key("k")
	elsewhere.Principal = "bob"
	c = commitOf(put("k", "4"))
	c.Guards = []store.Guard{{Key: elsewhere, Version: 0}}
	h.commit(c)
}

func testAbsence(h *harness) {
	c := commitOf(put("k", "mine"))
	c.Guards = []store.Guard{{Key: key("k")}}
	before := h.snapshot()
	h.commit(c)
	d := commitOf(put("k", "theirs"))
	d.Guards = []store.Guard{{Key: key("k")}}
	h.conflicts(d, "absence of a key that was made")
	h.has(before, "k", "")
	h.has(h.snapshot(), "k", "mine")
	h.write(del("k"), del("never"))
	h.write(del("k"))
	h.has(h.snapshot(), "k", "")
	h.commit(d)
	h.has(h.snapshot(), "k", "theirs")
}

// ranged is a commit that saw r as it is in s.
func (h *harness) ranged(s store.Snapshot, r store.Range, namesOnly bool) *store.Commit {
	h.Helper()
	c := commitOf(put("zz done", "yes"))
	c.Ranges = []store.RangeGuard{{Range: r, NamesOnly: namesOnly, Digest: store.DigestOf(h.scan(s, r, 1000), namesOnly)}}
	return c
}

func testRanges(h *harness) {
	r := store.Prefix(space, "d/")
	h.commit(h.ranged(h.snapshot(), r, false))
	empty := h.ranged(h.snapshot(), r, false)
	h.write(put("d/a", "1"), put("d/b", "2"), put("e", "outside"))
	h.conflicts(empty, "a range that was empty")
	for _, c := range []struct {
		what     string
		writes   []store.Write
		conflict bool
	}{
		{"nothing", nil, false},
		{"outside", []store.Write{put("e", "2"), put("d", "x"), put("d0", "x"), put("d.", "x")}, false},
		{"phantom", []store.Write{put("d/c", "3")}, true},
		{"first", []store.Write{put("d/", "0")}, true},
		{"value", []store.Write{put("d/a", "11")}, true},
		{"same value", []store.Write{put("d/a", "11")}, true},
		{"deleted", []store.Write{del("d/a")}, true},
		{"other space", []store.Write{{Key: store.Key{Space: store.Space{Principal: "bob", Package: "notes", Area: "kv"}, Name: "d/x"}}}, false},
		{"nothing to delete", []store.Write{del("d/none")}, false},
	} {
		g := h.ranged(h.snapshot(), r, false)
		h.write(c.writes...)
		if c.conflict {
			h.conflicts(g, c.what)
		} else {
			h.commit(g)
		}
	}
	// Deleted and written again is another version.
	g := h.ranged(h.snapshot(), r, false)
	h.write(del("d/b"))
	h.write(put("d/b", "2"))
	h.conflicts(g, "deleted and written again")
	// Exchanged names, in one commit.
	g = h.ranged(h.snapshot(), r, false)
	h.write(del("d/b"), put("d/bb", "2"))
	h.conflicts(g, "another name")
	// The guard sees the range before the writes of its own commit.
	g = h.ranged(h.snapshot(), r, false)
	g.Writes = append(g.Writes, put("d/own", "1"), del("d/bb"))
	h.commit(g)
	if got := pairs(h.scan(h.snapshot(), r, 9)); got != `"d/"=0 "d/c"=3 "d/own"=1 ` {
		h.Errorf("range at the end: %s", got)
	}
}

func testRangeNames(h *harness) {
	r := store.Prefix(space, "d/")
	file := func(name string, class uint8) store.Write {
		return store.Write{Key: key(name), Value: []byte("v"), Class: class}
	}
	h.write(file("d/a", 1), file("d/b", 2))
	for _, c := range []struct {
		what     string
		writes   []store.Write
		conflict bool
	}{
		{"value", []store.Write{file("d/a", 1)}, false},
		{"class", []store.Write{file("d/a", 2)}, true},
		{"phantom", []store.Write{file("d/c", 1)}, true},
		{"deleted", []store.Write{del("d/c")}, true},
	} {
		g := h.ranged(h.snapshot(), r, true)
		h.write(c.writes...)
		if c.conflict {
			h.conflicts(g, c.what)
		} else {
			h.commit(g)
		}
	}
	g := h.ranged(h.snapshot(), r, true)
	h.write(del("d/b"))
	h.write(file("d/b", 2))
	h.commit(g) // whoever saw names only cannot tell
	g = h.ranged(h.snapshot(), r, true)
	g.Ranges[0].NamesOnly = false
	h.conflicts(g, "the digest of names as that of versions")
}

func testRangeBounds(h *harness) {
	for _, n := range awkward {
		h.write(put(n, "v"))
	}
	whole := h.ranged(h.snapshot(), all(), false)
	h.commit(whole)
	again := *whole // it wrote into the range
	again.ID = newID()
	h.conflicts(&again, "all keys")
	for i, from := range awkward {
		r := store.Range{Space: space, From: from, To: awkward[(i*5+3)%len(awkward)]}
		h.commit(h.ranged(h.snapshot(), r, i%2 == 0))
	}
	g := h.ranged(h.snapshot(), store.Prefix(space, "\xff"), false)
	h.write(put("\xff\xff\xff", "last"))
	h.conflicts(g, "a phantom behind the last name")
	g = h.ranged(h.snapshot(), store.Range{Space: space, To: "\x00"}, false)
	h.write(put("", "first"))
	h.conflicts(g, "the empty name")
	// A guard of a space that has nothing.
	none := store.Range{Space: store.Space{Principal: "nobody"}}
	g = h.ranged(h.snapshot(), none, false)
	h.commit(g)
	g = h.ranged(h.snapshot(), none, false)
	h.write(store.Write{Key: store.Key{Space: none.Space, Name: "x"}})
	h.conflicts(g, "the first key of a space")
}
