package stored

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// The stored forms are read by later versions.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{entry{kind: volume.Dir, mode: 0o755}.encode(), "010201ed"},
		{entry{kind: volume.File, mode: 0o644, time: time.Unix(1, 2), size: 3}.encode(), "010101a4000000003b9aca020000000000000003"},
		{encodeTime(time.Unix(-1, 0)), "01ffffffffc4653600"},
		{content{inline: []byte("hi")}.encode(), "01016869"},
		{content{}.encode(), "0101"},
		{content{chunks: []store.Digest{{0xaa}, hole}}.encode(), "0102aa" + strings.Repeat("00", 63)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// What no version has written is refused.
func TestFormsRefused(t *testing.T) {
	for name, b := range map[string]string{
		"nothing": "", "other version": "020201ed", "other kind": "010301ed", "mode beyond permissions": "010203ed",
		"short directory": "010201", "long directory": "010201ed00", "short file": "010101a4", "negative size": "010101a40000000000000000ffffffffffffffff",
		"too large": "010101a400000000000000000fffffffffffffff",
	} {
		raw, err := hex.DecodeString(b)
		must(t, err)
		if e, err := decodeEntry(raw); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no form": {form}, "other form": {2, tagInline}, "other tag": {form, 3}, "no pieces": {form, tagChunks},
		"half a digest": append([]byte{form, tagChunks}, make([]byte, 31)...), "too long inline": append([]byte{form, tagInline}, make([]byte, maxInline+1)...),
	} {
		if c, err := decodeContent(b); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 9), append([]byte{form}, make([]byte, 7)...), append([]byte{form}, make([]byte, 9)...)} {
		if at, err := decodeTime(b); err == nil {
			t.Errorf("time %x: %v", b, at)
		}
	}
}

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := entry{kind: volume.Dir, mode: fs.FileMode(rapid.IntRange(0, 0o777).Draw(rt, "mode"))}
		if rapid.Bool().Draw(rt, "file") {
			e.kind = volume.File
			e.time = time.Unix(0, rapid.Int64().Draw(rt, "time")).UTC()
			e.size = rapid.Int64Range(0, maxSize).Draw(rt, "size")
		}
		got, err := decodeEntry(e.encode())
		must(rt, err)
		if got != e {
			rt.Fatalf("%+v, want %+v", got, e)
		}
	})
}

// A file is inline or in pieces, as many as its size has.
func TestContentFits(t *testing.T) {
	for _, c := range []struct {
		content content
		size    int64
		fits    bool
	}{
		{content{inline: []byte("abc")}, 3, true},
		{content{inline: []byte("abc")}, 4, false},
		{content{chunks: make([]store.Digest, 1)}, 1, true},
		{content{chunks: make([]store.Digest, 1)}, chunkSize, true},
		{content{chunks: make([]store.Digest, 1)}, chunkSize + 1, false},
		{content{chunks: make([]store.Digest, 2)}, chunkSize + 1, true},
		{content{chunks: make([]store.Digest, 1)}, 0, false},
	} {
		if got := c.content.fits(c.size); got != c.fits {
			t.Errorf("%d pieces, %d bytes, size %d: %v", len(c.content.chunks), len(c.content.inline), c.size, got)
		}
	}
	twice := content{chunks: []store.Digest{{1}, hole, {2}, {1}}}
	if got := twice.blobs(); !slices.Equal(got, []store.Digest{{1}, {2}}) {
		t.Errorf("blobs %v", got)
	}
}

// FuzzForms reads whatever a store may have: an error, or a value that is written
// as it was read.
func FuzzForms(f *testing.F) {
	f.Add(entry{kind: volume.Dir, mode: 0o755}.encode())
	f.Add(entry{kind: volume.File, mode: 0o644, time: time.Unix(1, 2), size: 3}.encode())
	f.Add(encodeTime(time.Unix(1, 2)))
	f.Add(content{inline: []byte("hi")}.encode())
	f.Add(content{chunks: []store.Digest{{1}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEntry(b); err != nil {
			if e != (entry{}) {
				t.Errorf("entry %+v and %v", e, err)
			}
		} else if !bytes.Equal(e.encode(), b) {
			t.Errorf("entry %x, want %x", e.encode(), b)
		}
		if at, err := decodeTime(b); err != nil {
			if !at.IsZero() {
				t.Errorf("time %v and %v", at, err)
			}
		} else if !bytes.Equal(encodeTime(at), b) {
			t.Errorf("time %x, want %x", encodeTime(at), b)
		}
		if c, err := decodeContent(b); err != nil {
			if c.inline != nil || c.chunks != nil {
				t.Errorf("content %+v and %v", c, err)
			}
		} else if !bytes.Equal(c.encode(), b) {
			t.Errorf("content %x, want %x", c.encode(), b)
		}
	})
}
