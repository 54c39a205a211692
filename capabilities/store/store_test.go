package store

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// names draws what sorts in ways of its own: few different bytes, the extremes
// among them.
func names() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0xfe, 0xff}), 0, 5).Draw(t, "name"))
	})
}

// in tells whether a range has a name, by the words of [Range].
func in(r Range, name string) bool { return name >= r.From && (r.To == "" || name < r.To) }

func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Space{Principal: "p", Package: "q", Area: "kv"}
		prefix, name := names().Draw(t, "prefix"), names().Draw(t, "other")
		if rapid.Bool().Draw(t, "inside") {
			name = prefix + name
		}
		r := Prefix(s, prefix)
		if r.Space != s {
			t.Fatalf("range of %v", r.Space)
		}
		if got, want := in(r, name), strings.HasPrefix(name, prefix); got != want {
			t.Fatalf("range %q to %q has %q: %v, want %v", r.From, r.To, name, got, want)
		}
	})
}

func TestPrefixBounds(t *testing.T) {
	for prefix, to := range map[string]string{
		"": "", "a": "b", "a/": "a0", "a\xff": "b", "a\xff\xff": "b", "\xff": "", "\xff\xff": "", "\x00": "\x01", "a\xfe\xff": "a\xff",
	} {
		if r := Prefix(Space{}, prefix); r.From != prefix || r.To != to {
			t.Errorf("prefix %q: %q to %q, want to %q", prefix, r.From, r.To, to)
		}
	}
}

func entries() *rapid.Generator[[]Entry] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
		return Entry{
			Key:     Key{Name: names().Draw(t, "name")},
			Version: Version(rapid.Uint64Range(1, 3).Draw(t, "version")), Class: rapid.Uint8Range(0, 2).Draw(t, "class"),
		}
	}), 0, 3)
}

// TestDigestOf: two lists have one digest if they are alike in what is seen of
// them, and only then.
func TestDigestOf(t *testing.T) {
	type part struct {
		name string
		what uint64
	}
	seen := func(es []Entry, namesOnly bool) (out []part) {
		for _, e := range es {
			p := part{e.Name, uint64(e.Version)}
			if namesOnly {
				p.what = uint64(e.Class)
			}
			out = append(out, p)
		}
		return out
	}
	same := func(a, b []part) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := entries().Draw(t, "a"), entries().Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") { // as far as names go
			b = append([]Entry(nil), a...)
			for i := range b {
				b[i].Version = Version(rapid.Uint64Range(1, 3).Draw(t, "other version"))
				b[i].Value = []byte("values are not seen")
			}
		}
		for _, namesOnly := range []bool{true, false} {
			want := same(seen(a, namesOnly), seen(b, namesOnly))
			if got := DigestOf(a, namesOnly) == DigestOf(b, namesOnly); got != want {
				t.Fatalf("names only %v: one digest %v, want %v", namesOnly, got, want)
			}
		}
	})
}

// TestDigestOfFixed: digests are kept in parked commits and compared by other
// processes; how they are made does not change.
func TestDigestOfFixed(t *testing.T) {
	es := []Entry{{Key: Key{Name: "a"}, Version: 1, Class: 2}, {Key: Key{Name: "b\x00"}, Version: 1 << 40, Class: 255}}
	for _, c := range []struct {
		entries   []Entry
		namesOnly bool
		want      string
	}{
		{nil, false, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{nil, true, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{es, false, "721b7cce6e2efe5352e8c33db4f13171347489f5f4cb6db3f02a36963c554129"},
		{es, true, "ae610203a0f397de72647a37dc8e5c9a261a03fad0c8f4f3f37d5294a76c9811"},
	} {
		if got := DigestOf(c.entries, c.namesOnly); got != c.want {
			t.Errorf("digest of %d entries, names only %v: %s, want %s", len(c.entries), c.namesOnly, got, c.want)
		}
	}
}

func TestDigestText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d, back Digest
		copy(d[:], rapid.SliceOfN(rapid.Byte(), len(d), len(d)).Draw(t, "digest"))
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			t.Fatalf("%s: %v, %v", text, back, err)
		}
	})
	for _, bad := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("0", 66), strings.Repeat("x", 64)} {
		if err := new(Digest).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as a digest", bad)
		}
	}
}
