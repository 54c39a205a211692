package stored

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// A small change of a large file puts the pieces that it touches, and a move
// puts and reads none.
func TestPiecesPut(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 10<<20/16)
	s := planted(t, map[string]string{"d/large": large, "small": "small"})
	for _, c := range []struct {
		name             string
		do               play
		mostPut, mostGot int
	}{
		{"append", func(g guest) error { return g.write("d/large", []byte("0123456789"), int64(len(large))) }, 1, 1},
		{"append across pieces", func(g guest) error {
			return g.write("d/large", bytes.Repeat([]byte("x"), chunkSize), int64(len(large))+10)
		}, 2, 1},
		{"change", func(g guest) error { return g.write("d/large", []byte("XY"), 2*chunkSize-1) }, 2, 2},
		{"cut", func(g guest) error { return g.truncate("d/large", 5*chunkSize+1) }, 1, 1},
		{"cut between pieces", func(g guest) error { return g.truncate("d/large", 5*chunkSize) }, 0, 0},
		{"grow by a hole", func(g guest) error { return g.truncate("d/large", 100*chunkSize) }, 0, 0},
		{"move", func(g guest) error { return g.mv("d/large", "moved") }, 0, 0},
		{"move back", func(g guest) error { return g.mv("moved", "d/large") }, 0, 0},
		{"move the directory", func(g guest) error { return g.mv("d", "e") }, 0, 0},
		{"set times", func(g guest) error { return g.touch("e/large", time.Unix(1, 0)) }, 0, 0},
		{"cut to a small file", func(g guest) error { return g.truncate("e/large", 10) }, 0, 1},
		{"small file", func(g guest) error { return g.write("small", []byte("x"), 10) }, 0, 0},
		{"remove", func(g guest) error { return g.rm("e/large") }, 0, 0},
	} {
		tree := now(t, s)
		g := over(t, tree)
		must(t, c.do(g))
		want := image(t, g.Result())
		change := g.change(t)
		must(t, g.Close())
		s.reset()
		must(t, apply(t.Context(), s, tree, change))
		if n := s.reset(); n["put"] > c.mostPut || n["blob"] > c.mostGot {
			t.Errorf("%s: %d pieces put, %d read", c.name, n["put"], n["blob"])
		}
		if d := different(want, image(t, now(t, s))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// The value of a file names all of its pieces, so that they are kept.
func TestBlobsNamed(t *testing.T) {
	data := append(bytes.Repeat([]byte("a"), chunkSize), make([]byte, chunkSize)...)
	data = append(data, bytes.Repeat([]byte("a"), chunkSize+1)...)
	s := planted(t, map[string]string{"f": string(data)})
	tree := now(t, s)
	g := over(t, tree)
	must(t, g.mv("f", "g"))
	_, _, writes, err := tree.Writes(t.Context(), g.change(t))
	must(t, err)
	for _, w := range writes {
		if w.Name != contentName("g") {
			continue
		}
		c, err := decodeContent(w.Value)
		must(t, err)
		if len(c.chunks) != 4 || c.chunks[0] != c.chunks[2] || c.chunks[1] != hole || len(w.Blobs) != 2 {
			t.Errorf("%v names %v", c.chunks, w.Blobs)
		}
		return
	}
	t.Error("no content was written")
}

// Classes and guards are what others rely on.
func TestWritesShape(t *testing.T) {
	s := planted(t, map[string]string{"d/f": "x"})
	tree := now(t, s)
	g := over(t, tree)
	must(t, g.list("d"))
	must(t, g.mkdir("e"))
	must(t, g.write("d/f", []byte("y"), 0))
	guards, ranges, writes, err := tree.Writes(t.Context(), g.change(t))
	must(t, err)
	for _, w := range guards {
		if w.Space != space || (w.Version == 0) != (w.Name == entryName("e")) {
			t.Errorf("guard %+v", w)
		}
	}
	if len(ranges) != 1 || ranges[0].Range != store.Prefix(space, "d\x00") || !ranges[0].NamesOnly {
		t.Errorf("ranges %+v", ranges)
	}
	classes := map[string]uint8{}
	for _, w := range writes {
		classes[w.Name] = w.Class
	}
	if classes["\x00e"] != uint8(volume.Dir)+1 || classes["d\x00f"] != uint8(volume.File)+1 {
		t.Errorf("classes %v", classes)
	}
}

// A change without steps demands and writes nothing.
func TestReadOnlyChange(t *testing.T) {
	s := planted(t, map[string]string{"d/f": "x"})
	tree := now(t, s)
	g := over(t, tree)
	must(t, g.list("d"))
	_, err := g.read("d/f")
	must(t, err)
	guards, ranges, writes, err := tree.Writes(t.Context(), g.change(t))
	if err != nil || len(guards) != 2 || len(ranges) != 1 || len(writes) != 0 {
		t.Errorf("%v %v %v %v", guards, ranges, writes, err)
	}
}

// stamped returns a guard for what is at a path now.
func stamped(tree *Tree, path string) volume.Guard {
	_, st, _ := tree.Lstat(path)
	return volume.Guard{Path: path, Stamp: st}
}

// A change that no overlay makes over such a tree is refused.
func TestWritesRefuses(t *testing.T) {
	s := planted(t, map[string]string{"f": "old", "d/f": "x", "d/g": "x"})
	tree := now(t, s)
	root, f, d, df, x := stamped(tree, "."), stamped(tree, "f"), stamped(tree, "d"), stamped(tree, "d/f"), stamped(tree, "x")
	lied := func(g volume.Guard, lie func(*volume.Stamp)) volume.Guard { lie(&g.Stamp); return g }
	put := volume.Step{Action: volume.ActPut, Path: "x", Mode: 0o644}
	with := func(change func(*volume.Step)) []volume.Step { s := put; change(&s); return []volume.Step{s} }
	for name, c := range map[string]struct {
		guards []volume.Guard
		steps  []volume.Step
		want   error
	}{
		"no guard":          {nil, []volume.Step{put}, capabilities.EINVAL},
		"out of the volume": {[]volume.Guard{{Path: "../x"}}, nil, capabilities.EINVAL},
		"kind that is not": {
			[]volume.Guard{lied(f, func(s *volume.Stamp) { s.Kind, s.Size, s.ModTime = volume.Dir, 0, time.Time{} }), {Path: "f/x"}},
			[]volume.Step{{Action: volume.ActPut, Path: "f/x", Mode: 0o644}},
			capabilities.EINVAL,
		},
		"size that is not":     {[]volume.Guard{lied(f, func(s *volume.Stamp) { s.Size = 4 })}, nil, capabilities.EINVAL},
		"mode of the root":     {[]volume.Guard{lied(root, func(s *volume.Stamp) { s.Mode = 0o700 })}, nil, capabilities.EINVAL},
		"absence that is not":  {[]volume.Guard{{Path: "f"}}, nil, volume.ErrConflict},
		"presence that is not": {[]volume.Guard{lied(f, func(s *volume.Stamp) { s.Version++ })}, nil, volume.ErrConflict},
		"keeps more than there is": {
			[]volume.Guard{x, f},
			with(func(s *volume.Step) { s.Base, s.Keep, s.Size = "f", 4, 4 }), capabilities.EINVAL,
		},
		"too large":       {[]volume.Guard{x}, with(func(s *volume.Step) { s.Size = math.MaxInt64 }), capabilities.EFBIG},
		"time to be kept": {[]volume.Guard{x}, with(func(s *volume.Step) { s.ModTime = time.Unix(1<<40, 0) }), capabilities.EINVAL},
		"time of a file": {
			[]volume.Guard{f},
			[]volume.Step{{Action: volume.ActTimes, Path: "f", ModTime: time.Unix(1<<40, 0)}},
			capabilities.EINVAL,
		},
		"time of nothing": {
			[]volume.Guard{x},
			[]volume.Step{{Action: volume.ActTimes, Path: "x", ModTime: at()}},
			capabilities.EINVAL,
		},
		"time of a directory": {
			[]volume.Guard{d},
			[]volume.Step{{Action: volume.ActTimes, Path: "d", ModTime: time.Unix(1<<40, 0)}},
			capabilities.EINVAL,
		},
		"link": {
			[]volume.Guard{x, {Path: "l", Stamp: volume.Stamp{Exists: true, Kind: volume.Symlink}}},
			[]volume.Step{{Action: volume.ActRemove, Path: "l"}, {Action: volume.ActLink, Path: "x", Base: "l", Target: "f"}},
			capabilities.EINVAL,
		},
		"directory with others' files": {
			[]volume.Guard{d, df},
			[]volume.Step{{Action: volume.ActRemove, Path: "d/f"}, {Action: volume.ActRemove, Path: "d"}},
			volume.ErrConflict,
		},
	} {
		_, _, writes, err := tree.Writes(t.Context(), &volume.Change{Guards: c.guards, Steps: c.steps})
		if !errors.Is(err, c.want) || len(writes) != 0 {
			t.Errorf("%s: %v, %v", name, writes, err)
		}
	}
	for name, l := range map[string]volume.Listing{
		"no directory":      {Path: "x"},
		"a file":            {Path: "f"},
		"other names":       {Path: "d", Digest: volume.ListingDigest("d", nil)},
		"what is not shown": {Path: "d", Digest: volume.ListingDigest("d", []volume.Entry{{Name: "f"}, {Name: "g"}}), Hidden: true},
	} {
		if _, _, _, err := tree.Writes(t.Context(), &volume.Change{Listings: []volume.Listing{l}}); !errors.Is(err, volume.ErrConflict) {
			t.Errorf("listing of %s: %v", name, err)
		}
	}
}

// A removal by hand demands that nobody puts anything into the directory.
func TestRemoveByHand(t *testing.T) {
	s := planted(t, map[string]string{"d/f": "x"})
	tree := now(t, s)
	c := &volume.Change{Guards: []volume.Guard{stamped(tree, "d"), stamped(tree, "d/f")}, Steps: []volume.Step{
		{Action: volume.ActRemove, Path: "d/f"}, {Action: volume.ActRemove, Path: "d"},
	}}
	other := now(t, s)
	g := over(t, other)
	must(t, g.write("d/x", nil, 0))
	must(t, apply(t.Context(), s, other, g.change(t)))
	if err := apply(t.Context(), s, tree, c); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
}

// A step that says no time gets that of the clock.
func TestTimesNotSaid(t *testing.T) {
	s := newCounted()
	tree := now(t, s)
	must(t, apply(t.Context(), s, tree, &volume.Change{
		Guards: []volume.Guard{{Path: "d"}, {Path: "f"}},
		Steps: []volume.Step{
			{Action: volume.ActMkdir, Path: "d", Mode: 0o750}, {Action: volume.ActPut, Path: "d/f", Mode: 0o640, Size: 3}, {Action: volume.ActPut, Path: "f", Mode: 0o600},
		},
	}))
	all := image(t, now(t, s))
	for path, mode := range map[string]os.FileMode{"d": 0o750, "d/f": 0o640, "f": 0o600} {
		if all[path].Mode != mode || !all[path].ModTime.Equal(at()) {
			t.Errorf("%s: %+v", path, all[path].Info)
		}
	}
	if all["d/f"].Content != "\x00\x00\x00" {
		t.Errorf("%q", all["d/f"].Content)
	}
}

// When a piece cannot be put, or the caller goes away, there is nothing to
// commit, and nobody is left behind.
func TestPutFails(t *testing.T) {
	full := errors.New("disk full")
	s := newCounted()
	tree := now(t, s)
	g := over(t, tree)
	must(t, g.write("large", bytes.Repeat([]byte("0123456789abcdef!"), 64*chunkSize/16), 0))
	c := g.change(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	for name, fault := range map[string]error{"full": full, "ends": context.Canceled} {
		s.reset()
		s.fault = func(op string) error {
			if op != "put" || s.count["put"] < 3 {
				return nil
			}
			if name == "ends" {
				cancel(nil)
				return nil
			}
			return fault
		}
		_, _, writes, err := tree.Writes(ctx, c)
		if !errors.Is(err, fault) || !errors.Is(err, capabilities.EIO) || len(writes) != 0 {
			t.Errorf("%s: %d writes, %v", name, len(writes), err)
		}
		if n := s.count["put"]; n > 3+2*maxPutting {
			t.Errorf("%s: %d pieces put", name, n)
		}
		if name == "ends" {
			ctx, cancel = context.WithCancelCause(t.Context())
		}
	}
	cancel(nil)
	s.fault = nil
	must(t, apply(t.Context(), s, tree, c))
}
