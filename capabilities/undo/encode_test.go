package undo

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// sample is a record with all there can be in one.
func sample(t testing.TB) *Record {
	b := planted(lively)
	call := over(b, 1)
	must(t, first(call.write("a.txt", "new", -1), call.rm("big.bin"), call.mv("log", "d/log"), call.write("d/log", "X", 270_000),
		call.mv("l", "l2"), call.mv("dev", "dev2"), call.mkdir("new"), call.rmAll("empty")))
	c, err := call.Change()
	must(t, err)
	rec, err := Build(t.Context(), Options{Blobs: memstore.New()},
		[]Tree{{Name: "data", Path: "/data", Base: b, Result: call.Result(), Steps: c.Steps}}, deskKeys)
	must(t, err)
	rec.CallID, rec.Principal, rec.Package, rec.Tool, rec.Time = "c1", "local", "notes", "add_note", when
	rec.Tell(deskEffects)
	rec.Outbox, rec.HoldUntil, rec.UndoneBy = []string{"k1"}, when, "c2"
	rec.Lose("/data/\xff", WhyName)
	return rec
}

func TestEncode(t *testing.T) {
	rec := sample(t)
	b, err := rec.Encode()
	must(t, err)
	out, err := Decode(b)
	must(t, err)
	if !reflect.DeepEqual(rec, out) {
		t.Errorf("got %+v\nwant %+v", out, rec)
	}
}

// There is one text of each record.
func TestDecodeStrict(t *testing.T) {
	b, err := sample(t).Encode()
	must(t, err)
	good := string(b)
	for name, bad := range map[string]string{
		"empty": "", "null": "null", "no format": strings.Replace(good, `"format":1,`, "", 1), "format": strings.Replace(good, `"format":1`, `"format":2`, 1),
		"more behind": good + "{}", "space": good + " ", "unknown field": strings.Replace(good, `"tool"`, `"x":1,"tool"`, 1),
		"case": strings.Replace(good, `"tool"`, `"Tool"`, 1), "twice": strings.Replace(good, `"tool":"add_note"`, `"tool":"x","tool":"add_note"`, 1),
		"kind": strings.Replace(good, `"kind":"special"`, `"kind":"fifo"`, 1), "path": strings.Replace(good, `"path":"dev2"`, `"path":"../dev2"`, 1),
		"from": strings.Replace(good, `"from":"dev2"`, `"from":"nowhere"`, 1), "order": strings.Replace(good, `"path":"a.txt"`, `"path":"z"`, 1),
		"zone": strings.Replace(good, `"time":"2026-03-04T05:06:07.000000008Z"`, `"time":"2026-03-04T06:06:07.000000008+01:00"`, 1),
	} {
		if bad == good {
			t.Fatalf("%s: nothing was replaced in %s", name, good)
		}
		if r, err := Decode([]byte(bad)); !errors.Is(err, ErrInvalid) || r != nil {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func TestContentValid(t *testing.T) {
	file := func(size int64, from string, c *Content) *Record {
		return &Record{CallID: "c", Principal: "p", Package: "k", Time: when, Volumes: []Volume{{Name: "v", Paths: []Path{
			{Path: "a", Left: State{Kind: File, Size: 4}, Was: State{Kind: File, Size: size, From: from, Content: c}},
		}}}}
	}
	d := Chunk{Blob: store.Digest{1}}
	for name, c := range map[string]struct {
		rec *Record
		ok  bool
	}{
		"inline":          {file(1, "a", &Content{Inline: []byte("x")}), true},
		"none":            {file(1, "a", nil), true},
		"empty":           {file(0, "a", &Content{}), true},
		"chunks":          {file(5, "a", &Content{Chunk: 4, Chunks: []Chunk{d, d}}), true},
		"kept":            {file(5, "a", &Content{Chunk: 4, Chunks: []Chunk{{}, d}}), true},
		"kept beyond":     {file(5, "a", &Content{Chunk: 4, Chunks: []Chunk{d, {}}}), false},
		"kept of nothing": {file(5, "", &Content{Chunk: 4, Chunks: []Chunk{{}, d}}), false},
		"inline size":     {file(2, "a", &Content{Inline: []byte("x")}), false},
		"both":            {file(1, "a", &Content{Inline: []byte("x"), Chunk: 1}), false},
		"no content":      {file(1, "a", &Content{}), false},
		"too few":         {file(9, "a", &Content{Chunk: 4, Chunks: []Chunk{d, d}}), false},
		"too many":        {file(4, "a", &Content{Chunk: 4, Chunks: []Chunk{d, d}}), false},
		"chunk of 0":      {file(4, "a", &Content{Chunks: []Chunk{d}}), false},
		"chunk too large": {file(4, "a", &Content{Chunk: store.MaxBlob + 1, Chunks: []Chunk{d}}), false},
		"negative":        {file(-1, "a", &Content{}), false},
		"huge":            {file(1<<62, "a", &Content{Chunk: 1, Chunks: []Chunk{d}}), false},
	} {
		if _, err := c.rec.Encode(); (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrInvalid)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the call left of one path was at one path.
func TestFromValid(t *testing.T) {
	moved := func(kind Kind, target string) Path {
		return Path{Left: State{Kind: Absent}, Was: State{Kind: kind, From: "z", Target: target}}
	}
	for name, c := range map[string]struct {
		paths []Path
		ok    bool
	}{
		"link":         {[]Path{moved(Link, "t")}, true},
		"twice":        {[]Path{moved(Link, "t"), moved(Link, "t")}, false},
		"other target": {[]Path{moved(Link, "u")}, false},
		"other kind":   {[]Path{moved(Special, "")}, false},
	} {
		for i := range c.paths {
			c.paths[i].Path = string(rune('a' + i))
		}
		paths := append(c.paths, Path{Path: "z", Left: State{Kind: Link, Target: "t"}, Was: State{Kind: Absent}})
		r := &Record{CallID: "c", Principal: "p", Package: "k", Time: when, Volumes: []Volume{{Name: "v", Paths: paths}}}
		if _, err := r.Encode(); (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrInvalid)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is decoded is valid, encodes to the same text, and can be asked anything.
func FuzzDecode(f *testing.F) {
	b, err := sample(f).Encode()
	must(f, err)
	f.Add(b)
	f.Add([]byte(`{"format":1,"callId":"c","principal":"p","package":"k","tool":"","time":"2026-03-04T05:06:07Z"}`))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if (r == nil) == (err == nil) {
			t.Fatalf("record %v and error %v", r, err)
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := r.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("again %s, %v", again, err)
		}
		r.Blobs()
		d, err := r.Diff(t.Context(), Show{}, Now{})
		if err != nil || d == nil {
			t.Fatalf("diff: %v", err)
		}
		if err := Restore(t.Context(), r, only(over(planted(nil), 1), nil)); err == nil && !r.Empty() {
			// It can be that nothing is what the call left.
			for s := range r.was {
				if s.Kind == Link || s.Kind == Special {
					t.Fatalf("restored: %s", b)
				}
			}
		}
	})
}
