package stored

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func TestKeys(t *testing.T) {
	for got, want := range map[string]string{
		entryName("c.txt"):       "\x00c.txt",
		entryName("a/b/c.txt"):   "a/b\x00c.txt",
		contentName("a/b/c.txt"): "\x01a/b/c.txt",
		timeName("."):            "\x02.",
		timeName("a/b"):          "\x02a/b",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestVolumeOf(t *testing.T) {
	s := SpaceOf("alice", "notes", "data")
	if want := (store.Space{Principal: "alice", Package: "notes", Area: "volume/data"}); s != want {
		t.Errorf("%+v", s)
	}
	if name, ok := VolumeOf(s); !ok || name != "data" {
		t.Errorf("%q %v", name, ok)
	}
	for _, area := range []string{"kv", "volume", "volume/", "undo", ""} {
		if name, ok := VolumeOf(store.Space{Area: area}); ok {
			t.Errorf("%q is the volume %q", area, name)
		}
	}
}

// The range of a directory has the keys of its entries and no others.
func TestDirectoryRange(t *testing.T) {
	part := rapid.StringMatching(`[\x01\x02a.é-]{1,3}`).Filter(func(s string) bool { return s != "." && s != ".." })
	path := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/") })
	rapid.Check(t, func(rt *rapid.T) {
		dir, other := rapid.OneOf(path, rapid.Just(".")).Draw(rt, "dir"), path.Draw(rt, "other")
		r := store.Prefix(space, prefixOf(dir))
		in := func(name string) bool { return name >= r.From && name < r.To }
		of, _ := split(other)
		if in(entryName(other)) != (of == dir) {
			rt.Fatalf("entry of %q in %q: %v", other, dir, in(entryName(other)))
		}
		if in(contentName(other)) || in(timeName(other)) || in(timeName(".")) {
			rt.Fatalf("other keys of %q in %q", other, dir)
		}
		if entryName(other) == contentName(dir) || entryName(other) == timeName(dir) || (dir != "." && dir != other && entryName(other) == entryName(dir)) {
			rt.Fatalf("%q and %q share a key", other, dir)
		}
	})
}
