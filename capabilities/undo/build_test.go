package undo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// putCounter counts what is put.
type putCounter struct {
	store.Blobs
	bytes int
	fail  error
}

func (p *putCounter) PutBlob(ctx context.Context, data []byte) (store.Digest, error) {
	p.bytes += len(data)
	if p.fail != nil {
		return store.Digest{}, p.fail
	}
	return p.Blobs.PutBlob(ctx, data)
}

// Only what is no longer there is kept.
func TestBuildKeepsDifference(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for name, c := range map[string]struct {
		do    func(g guest) error
		bytes int
	}{
		"append":       {func(g guest) error { return g.write("big", "more", 1<<20) }, 0},
		"append whole": {func(g guest) error { return g.write("big", big+"more", -1) }, 0},
		"patch":        {func(g guest) error { return g.write("big", "patch", 300_000) }, chunkSize},
		"patch whole":  {func(g guest) error { return g.write("big", big[:300_000]+"patch"+big[300_005:], -1) }, chunkSize},
		"move":         {func(g guest) error { return g.mv("big", "big2") }, 0},
		"move patched": {func(g guest) error { return first(g.mv("big", "big2"), g.write("big2", "patch", 0)) }, chunkSize},
		"touch":        {func(g guest) error { return g.touch("big", when.Add(1)) }, 0},
		"cut":          {func(g guest) error { return g.truncate("big", 3*chunkSize) }, chunkSize},
		"remove":       {func(g guest) error { return g.rm("big") }, 1 << 20},
	} {
		b, blobs := planted(map[string]string{"big": big}), &putCounter{Blobs: memstore.New()}
		g := over(b, 1)
		must(t, c.do(g))
		rec, err := Build(t.Context(), Options{Blobs: blobs}, []Tree{treeOf(t, b, g)}, nil)
		must(t, err)
		if blobs.bytes != c.bytes || rec.Size != int64(c.bytes) || !rec.Complete() {
			t.Errorf("%s: %d bytes put, size %d, want %d", name, blobs.bytes, rec.Size, c.bytes)
		}
	}
}

// A record holds so much and says what it has not.
func TestBuildBounds(t *testing.T) {
	b := planted(map[string]string{"a": strings.Repeat("a", 100_000), "b": strings.Repeat("b", 100_000), "c": "c"})
	key := []KeyChange{{Name: "k", Was: KeyValue{true, make([]byte, 100_000)}}}
	for name, c := range map[string]struct {
		max   int64
		blobs bool
		lost  []Loss
		put   int
	}{
		"room":     {1 << 20, true, nil, 300_000},
		"default":  {0, true, nil, 300_000},
		"two":      {200_001, true, []Loss{{"k", WhyLarge}}, 200_000},
		"one":      {150_000, true, []Loss{{"/data/b", WhyLarge}, {"k", WhyLarge}}, 100_000},
		"none":     {1, true, []Loss{{"/data/a", WhyLarge}, {"/data/b", WhyLarge}, {"k", WhyLarge}}, 0},
		"no blobs": {1 << 20, false, []Loss{{"/data/a", WhyLarge}, {"/data/b", WhyLarge}, {"k", WhyLarge}}, 0},
	} {
		g := over(b, 1)
		must(t, first(g.rm("a"), g.rm("b"), g.rm("c")))
		count := &putCounter{Blobs: memstore.New()}
		o := Options{MaxBytes: c.max}
		if c.blobs {
			o.Blobs = count
		}
		rec, err := Build(t.Context(), o, []Tree{treeOf(t, b, g)}, key)
		must(t, err)
		if !slices.Equal(rec.Lost, c.lost) || count.bytes != c.put || rec.Size != int64(c.put) || rec.Complete() != (c.lost == nil) {
			t.Errorf("%s: lost %v, %d bytes put, size %d", name, rec.Lost, count.bytes, rec.Size)
		}
		again(t, rec)
	}
}

// No number of small files or long names makes a record that no store takes.
func TestBuildMany(t *testing.T) {
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("f%03d", i)] = strings.Repeat("x", 10_000)
	}
	b, blobs := planted(files), memstore.New()
	g := over(b, 1)
	for name := range files {
		must(t, g.rm(name))
	}
	rec := recorded(t, blobs, b, g)
	text, err := rec.Encode()
	if err != nil || len(text) > 4<<20 || !rec.Complete() {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	sameImage(t, "undo", image(t, undone(t, blobs, g.Result(), rec).Result()), image(t, b))

	dir := strings.Repeat(strings.Repeat("d", 250)+"/", 14)
	long := planted(map[string]string{dir: ""})
	for i := range 3000 {
		long[fmt.Sprintf("%sf%d", dir, i)] = item{mode: 0o644}
	}
	var steps []volume.Step
	for path := range long {
		if long[path].kind == volume.File {
			steps = append(steps, volume.Step{Action: volume.ActRemove, Path: path})
		}
	}
	rec, err = Build(t.Context(), Options{}, []Tree{{Name: "data", Path: "/data", Base: long, Result: planted(map[string]string{dir: ""}), Steps: steps}}, nil)
	must(t, err)
	if rec.Complete() || len(rec.Lost) != maxTold || rec.MoreLost == 0 || rec.Lost[0].Why != WhyMany {
		t.Errorf("lost %d and %d more", len(rec.Lost), rec.MoreLost)
	}
	if w, err := again(t, rec).Writes(0); err != nil || len(w[0].Value) > store.MaxValue {
		t.Errorf("writes: %v", err)
	}
}

// chunkedForest is a volume whose files are in blobs already.
type chunkedForest struct {
	forest
	blobs *memstore.Store
	size  int
	open  map[string]int // how often the content of a file was read
}

func (c chunkedForest) Open(name string) (volume.Content, error) {
	f, err := c.forest.Open(name)
	if err != nil {
		return nil, err
	}
	return &chunkedLeaf{f.(*leaf), c, name}, nil
}

type chunkedLeaf struct {
	*leaf
	c    chunkedForest
	name string
}

func (l *chunkedLeaf) ReadAt(p []byte, off int64) (int, error) {
	l.c.open[l.name]++
	return l.leaf.ReadAt(p, off)
}

func (l *chunkedLeaf) Chunks() (int, []store.Digest, bool) {
	var list []store.Digest
	for chunk := range slices.Chunk([]byte(l.it.data), l.c.size) {
		d, err := l.c.blobs.PutBlob(context.Background(), chunk)
		if err != nil {
			return 0, nil, false
		}
		list = append(list, d)
	}
	return l.c.size, list, len(list) > 0
}

// What is in blobs already is named and not read.
func TestBuildChunked(t *testing.T) {
	data := strings.Repeat("abcdefg\n", 30_000)
	blobs := memstore.New()
	b := chunkedForest{planted(map[string]string{"gone": data, "changed": data, "small": "s", "none": ""}), blobs, 100_000, map[string]int{}}
	g := over(b, 1)
	must(t, first(g.rm("gone"), g.write("changed", data[:150_000]+"X"+data[150_001:], -1), g.rm("small"), g.rm("none")))
	tree := treeOf(t, b, g)
	clear(b.open)
	count := &putCounter{Blobs: blobs}
	rec, err := Build(t.Context(), Options{Blobs: count}, []Tree{tree}, nil)
	must(t, err)
	if count.bytes != 0 || len(b.open) != 0 {
		t.Errorf("%d bytes put, read %v", count.bytes, b.open)
	}
	want := map[string]int{"gone": 3, "changed": 1, "small": 1, "none": 0}
	for _, p := range rec.Volumes[0].Paths {
		if c := p.Was.Content; c != nil && len(c.blobs()) != want[p.Path] {
			t.Errorf("%s: %d blobs, want %d", p.Path, len(c.blobs()), want[p.Path])
		}
	}
	if rec.Size != 240_000+100_000+1 {
		t.Errorf("size %d", rec.Size)
	}
	rec = again(t, rec)
	sameImage(t, "undo", image(t, undone(t, blobs, copied(t, g.Result()), rec).Result()), image(t, b))
}

// The digest of what the call left is that of the content.
func TestBuildDigests(t *testing.T) {
	b := planted(map[string]string{"a": "old"})
	g := over(b, 1)
	must(t, g.write("a", "new", -1))
	rec := recorded(t, nil, b, g)
	i := slices.IndexFunc(rec.Volumes[0].Paths, func(p Path) bool { return p.Path == "a" })
	p := rec.Volumes[0].Paths[i]
	if p.Left.Digest != sha256.Sum256([]byte("new")) || p.Was.Digest != sha256.Sum256([]byte("old")) {
		t.Errorf("%+v", p)
	}
}

// When too much was moved, files are known by size and time.
func TestBuildMovedUnread(t *testing.T) {
	b := planted(map[string]string{"big": strings.Repeat("x", 1000)})
	g := over(b, 1)
	must(t, g.mv("big", "big2"))
	rec, err := Build(t.Context(), Options{MaxBytes: 999}, []Tree{treeOf(t, b, g)}, nil)
	must(t, err)
	rec = again(t, rec)
	if !rec.Complete() {
		t.Fatalf("lost %v", rec.Lost)
	}
	sameImage(t, "undo", image(t, undone(t, nil, g.Result(), rec).Result()), image(t, b))
	for name, change := range map[string]func(*item){
		"time": func(i *item) { i.time = when.Add(1) }, "size": func(i *item) { i.data += "x" },
	} {
		after := copied(t, g.Result())
		after.change("big2", change)
		if err := Restore(t.Context(), rec, only(over(after, 2), nil)); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	b := planted(map[string]string{"a": strings.Repeat("x", 100_000)})
	g := over(b, 1)
	must(t, g.rm("a"))
	tree := treeOf(t, b, g)
	o := Options{Blobs: &putCounter{Blobs: memstore.New(), fail: errDisk}}
	if _, err := Build(t.Context(), o, []Tree{tree}, nil); !errors.Is(err, errDisk) {
		t.Errorf("put: %v", err)
	}
	o.Blobs = memstore.New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, o, []Tree{tree}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	tree.Base = shrinking{b}
	if _, err := Build(t.Context(), o, []Tree{tree}, nil); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("shorter: %v", err)
	}
	tree.Base = vanishing{b}
	if _, err := Build(t.Context(), o, []Tree{tree}, nil); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("gone: %v", err)
	}
	tree.Base, tree.Steps = b, []volume.Step{{Action: volume.ActRemove, Path: "a/b"}}
	if _, err := Build(t.Context(), o, []Tree{tree}, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("no directory: %v", err)
	}
	if rec, err := Build(t.Context(), o, []Tree{{Name: "data", Base: b, Result: b}}, nil); err != nil || !rec.Empty() || !rec.Complete() {
		t.Errorf("nothing: %+v, %v", rec, err)
	}
}

// shrinking has files that turn out to be shorter than they were.
type shrinking struct{ forest }

func (s shrinking) Open(name string) (volume.Content, error) {
	it := s.forest[name]
	return &leaf{strings.NewReader(it.data[1:]), it}, nil
}

// vanishing has files that turn out not to be there.
type vanishing struct{ forest }

func (vanishing) Open(name string) (volume.Content, error) { return planted(nil).Open(name) }

func TestKeys(t *testing.T) {
	long := strings.Repeat("long value ", 50_000)
	was := currentKeys{"count": "1", "removed": "r", "long": long, "empty": "", "same": "s"}
	left := currentKeys{"count": "2", "made": "", "long": "short", "same": "s"}
	var keys []KeyChange
	for _, name := range []string{"removed", "count", "made", "long", "empty", "same"} {
		a, inA := was[name]
		b, inB := left[name]
		keys = append(keys, KeyChange{name, KeyValue{inA, []byte(a)}, KeyValue{inB, []byte(b)}})
	}
	blobs := memstore.New()
	rec, err := Build(t.Context(), Options{Blobs: blobs}, nil, keys)
	must(t, err)
	rec = again(t, rec)
	for name, how := range map[string]Difference{"count": OtherContent, "made": NowGone, "removed": NowThere} {
		now := currentKeys{}
		for k, v := range left {
			now[k] = v
		}
		if how == NowGone {
			delete(now, name)
		} else {
			now[name] = "other"
		}
		err := Restore(t.Context(), rec, Where{Keys: now, Blobs: blobs})
		var e *ChangedError
		if !errors.As(err, &e) || len(e.Changed) != 1 || e.Changed[0] != (Changed{"", name, how}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Restore(t.Context(), rec, Where{Keys: left, Blobs: without{blobs, rec.Blobs()[1], store.ErrGone}}); !errors.Is(err, store.ErrGone) || left["count"] != "2" {
		t.Errorf("gone: %v, %v", err, left)
	}
	if err := Restore(t.Context(), rec, Where{Keys: left, Blobs: swapped{blobs}}); !errors.Is(err, store.ErrGone) {
		t.Errorf("other bytes: %v", err)
	}
	left = currentKeys{"count": "2", "made": "", "long": "short", "same": "s"}
	if err := Restore(t.Context(), rec, Where{Blobs: blobs}); !errors.Is(err, ErrNoVolume) {
		t.Errorf("no keys: %v", err)
	}
	must(t, Restore(t.Context(), rec, Where{Keys: left, Blobs: blobs}))
	if fmt.Sprint(left) != fmt.Sprint(was) {
		t.Errorf("got %.200v, want %.200v", left, was)
	}
	if rec, err := Build(t.Context(), Options{}, nil, []KeyChange{{Name: "\xff", Left: KeyValue{Exists: true}}}); err != nil || rec.Complete() {
		t.Errorf("name: %v, %v", rec, err)
	}
}

// swapped has other bytes than were put.
type swapped struct{ store.Blobs }

func (s swapped) Blob(ctx context.Context, d store.Digest) ([]byte, error) {
	b, err := s.Blobs.Blob(ctx, d)
	for i := range b {
		b[i] ^= 1
	}
	return b, err
}

// A file that was moved and made again as it was is not changed, whatever others do
// to it later.
func TestMadeAgain(t *testing.T) {
	b := planted(map[string]string{"a": "same", "l": "->a"})
	g := over(b, 1)
	must(t, first(g.mv("a", "c"), g.write("a", "same", 0)))
	rec := recorded(t, nil, b, g)
	for _, p := range rec.Volumes[0].Paths {
		if p.Path == "a" {
			t.Errorf("a: %+v", p)
		}
	}
	after := copied(t, g.Result())
	after.change("a", func(i *item) { i.data = "changed later" })
	back := undone(t, nil, after, rec)
	if _, _, err := back.Result().Lstat("c"); !isAbsent(err) {
		t.Errorf("c: %v", err)
	}
}
