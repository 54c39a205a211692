package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// desk is a folder of a person, and what a call does in it.
func desk(t *testing.T) (forest, guest) {
	b := planted(map[string]string{
		"notes.json": "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "list.txt": "plums\npears", "gone.txt": "bye\n", "photo": "\x00\x01\x02",
		"old/x": "x\n", "l": "->list.txt", "moved.txt": "one\ntwo\nthree\n", "same.txt": "s\n", "dev": "special", "turns": "t\n",
		"log": strings.Repeat("a line\n", 50_000), "touched": "", "closed/f": "f\n", "name\nwith\x1b[31m": "n\n", "raw": "a\x1b[2J\n",
	})
	g := over(b, 1)
	must(t, first(
		g.write("notes.json", "{\n  \"a\": 1,\n  \"b\": 3\n}\n", -1), g.write("list.txt", "\ncherries\n", 11), g.rm("gone.txt"),
		g.write("photo", "\x00\x02", -1), g.rmAll("old"), g.mkdir("new"), g.write("new/f.txt", "hello\n", 0), g.mv("l", "new/l"),
		g.mv("moved.txt", "new/moved.txt"), g.write("new/moved.txt", "TWO", 4), g.mv("same.txt", "new/same.txt"), g.mv("dev", "new/dev"),
		g.rm("turns"), g.mkdir("turns"), g.write("log", "b line\n", 350_000), g.touch("touched", time.Unix(1, 0)), g.touch("closed", time.Unix(2, 0)),
		g.write("name\nwith\x1b[31m", "N\n", -1), g.write("raw", "b\r\x1b[2J\n", -1), g.write("empty", "", 0),
	))
	return b, g
}

var deskKeys = []KeyChange{
	{Name: "count", Was: KeyValue{true, []byte("1")}, Left: KeyValue{true, []byte("2")}},
	{Name: "made", Left: KeyValue{true, []byte("m\n")}},
	{Name: "removed", Was: KeyValue{true, []byte("r\n")}},
	{Name: "same", Was: KeyValue{true, []byte("s")}, Left: KeyValue{true, []byte("s")}},
}

var deskEffects = []capabilities.Effect{
	{Verb: capabilities.Read, Kind: capabilities.KindFile, Object: "/data/notes.json", Bytes: 3},
	{Verb: capabilities.Insert, Kind: capabilities.KindFile, Object: "/data/list.txt", Bytes: 9},
	{Verb: capabilities.Send, Kind: capabilities.KindOutbox, Object: "hooks.example.com", Bytes: 12},
	{Verb: capabilities.Send, Kind: capabilities.KindHTTP, Object: "POST https://api.example.com/v1/x", Bytes: 7},
}

// currentKeys are keys as they are.
type currentKeys map[string]string

func (c currentKeys) Get(_ context.Context, name string) ([]byte, bool, error) {
	v, ok := c[name]
	return []byte(v), ok, nil
}

func (c currentKeys) Put(_ context.Context, name string, value []byte) error {
	c[name] = string(value)
	return nil
}

func (c currentKeys) Delete(_ context.Context, name string) error {
	delete(c, name)
	return nil
}

func TestPreviewGolden(t *testing.T) {
	b, g := desk(t)
	d, err := Preview(t.Context(), Show{Effects: deskEffects}, []Tree{treeOf(t, b, g)}, deskKeys)
	must(t, err)
	golden(t, "preview.golden", []byte(d.String()))
	j, err := json.MarshalIndent(d, "", " ")
	must(t, err)
	golden(t, "preview.json.golden", append(j, '\n'))
}

// A record shows the same once the call is committed, and less when things have
// changed since or are no longer kept.
func TestRecordDiffGolden(t *testing.T) {
	b, g := desk(t)
	blobs := memstore.New()
	rec, err := Build(t.Context(), Options{Blobs: blobs}, []Tree{treeOf(t, b, g)}, deskKeys)
	must(t, err)
	rec.Tell(deskEffects)
	rec = again(t, rec)
	now := Now{Volumes: func(string) volume.Base { return g.Result() }, Keys: currentKeys{"count": "2", "made": "m\n"}, Blobs: blobs}
	d, err := rec.Diff(t.Context(), Show{}, now)
	must(t, err)
	golden(t, "preview.golden", []byte(d.String()))

	after := copied(t, g.Result())
	after.change("notes.json", func(i *item) { i.data = "{}" })
	after.change("new/f.txt", func(i *item) { i.kind = volume.Dir })
	delete(after, "new/moved.txt")
	now = Now{Volumes: func(string) volume.Base { return after }, Keys: currentKeys{"count": "3"}}
	d, err = rec.Diff(t.Context(), Show{}, now)
	must(t, err)
	golden(t, "since.golden", []byte(d.String()))
	d, err = rec.Diff(t.Context(), Show{}, Now{})
	must(t, err)
	golden(t, "alone.golden", []byte(d.String()))
}

func TestDiffBounds(t *testing.T) {
	b := planted(map[string]string{"a": strings.Repeat("a\n", 100), "b": strings.Repeat("b\n", 100), "c": "c\n"})
	g := over(b, 1)
	must(t, first(g.write("a", "x\n", 0), g.write("b", "x\n", 0), g.write("c", "x\n", 0)))
	for name, c := range map[string]struct {
		show  Show
		notes []Note
		more  int
	}{
		"defaults":  {Show{}, []Note{"", "", ""}, 0},
		"each file": {Show{MaxFile: 199}, []Note{NoteLarge, NoteLarge, ""}, 0},
		"all texts": {Show{MaxText: 80}, []Note{NoteLarge, NoteLarge, ""}, 0},
		"one text":  {Show{MaxText: 20}, []Note{NoteLarge, NoteLarge, NoteLarge}, 0},
		"items":     {Show{MaxItems: 2}, []Note{"", ""}, 1},
	} {
		d, err := Preview(t.Context(), c.show, []Tree{treeOf(t, b, g)}, nil)
		must(t, err)
		var notes []Note
		for _, it := range d.Items {
			notes = append(notes, it.Note)
			if (it.Note == "") != (it.Text != "") {
				t.Errorf("%s: %s: note %q and text %q", name, it.Object, it.Note, it.Text)
			}
		}
		if !slices.Equal(notes, c.notes) || d.More != c.more {
			t.Errorf("%s: %q and %d more", name, notes, d.More)
		}
	}
}

func TestDiffErrors(t *testing.T) {
	b, g := desk(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Preview(ctx, Show{}, []Tree{treeOf(t, b, g)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("preview: %v", err)
	}
	rec := recorded(t, memstore.New(), b, g)
	if _, err := rec.Diff(ctx, Show{}, Now{}); !errors.Is(err, context.Canceled) {
		t.Errorf("record: %v", err)
	}
	big := planted(map[string]string{"big": strings.Repeat("x\n", 100_000)})
	h := over(big, 1)
	must(t, h.rm("big"))
	blobs := memstore.New()
	rec = recorded(t, blobs, big, h)
	if _, err := rec.Diff(t.Context(), Show{}, Now{Blobs: without{blobs, rec.Blobs()[0], errDisk}}); !errors.Is(err, errDisk) {
		t.Errorf("disk: %v", err)
	}
	d, err := rec.Diff(t.Context(), Show{}, Now{Blobs: without{blobs, rec.Blobs()[0], store.ErrGone}})
	if err != nil || d.Items[0].Note != NoteGone {
		t.Errorf("gone: %v, %v", d, err)
	}
}

// What a preview shows is what the overlay says the call would leave, and what
// the record shows afterwards.
func TestDiffAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, blobs := growing(t), memstore.New()
		g := over(b, 1)
		lives(t, g)
		tree := treeOf(t, b, g)
		d, err := Preview(t.Context(), Show{MaxItems: 1e6, MaxFile: 1e9, MaxText: 1e9}, []Tree{tree}, nil)
		must(t, err)
		var got, want []string
		for _, it := range d.Items {
			got = append(got, fmt.Sprint(it.Verb, it.Object, it.Bytes))
		}
		effects := g.Left("/data")
		for _, e := range effects {
			want = append(want, fmt.Sprint(e.Verb, e.Object, e.Bytes))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
		rec := recorded(t, blobs, b, g)
		rec.Effects = effects
		after, err := rec.Diff(t.Context(), Show{}, Now{Volumes: func(string) volume.Base { return g.Result() }, Blobs: blobs})
		must(t, err)
		d, err = Preview(t.Context(), Show{Effects: effects}, []Tree{tree}, nil)
		must(t, err)
		if after.String() != d.String() {
			t.Fatalf("record shows\n%.2000s\npreview shows\n%.2000s", after, d)
		}
	})
}
