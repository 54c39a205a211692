package stored

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/enough"
)

var (
	genName = rapid.SampledFrom([]string{"a", "b", "c"})
	genPath = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(genName, 1, 3).Draw(t, "names"), "/")
	})
	genSize = rapid.SampledFrom([]int{
		0, 1, 10, 5000, maxInline - 1, maxInline, maxInline + 1, chunkSize - 1, chunkSize, chunkSize + 1, 2*chunkSize + 7,
	})
	genFill = rapid.SampledFrom([]byte{0, 'x', 'y'})
)

// play is one operation that a guest does, the same whatever is below.
type play func(g guest) error

// plays are random operations. What they return is compared.
var plays = rapid.Custom(func(t *rapid.T) play {
	path, to := genPath.Draw(t, "path"), genPath.Draw(t, "to")
	size, off := genSize.Draw(t, "size"), genSize.Draw(t, "off")
	data := bytes.Repeat([]byte{genFill.Draw(t, "fill")}, size)
	switch rapid.SampledFrom([]string{
		"write", "write", "write", "truncate", "read", "list", "mkdir", "mkdir", "remove", "rename", "rename", "touch",
	}).Draw(t, "op") {
	case "write":
		return func(g guest) error { return g.write(path, data, int64(off)) }
	case "truncate":
		return func(g guest) error { return g.truncate(path, int64(size)) }
	case "read":
		return func(g guest) error { _, err := g.read(path); return err }
	case "list":
		return func(g guest) error { return g.list(path) }
	case "mkdir":
		return func(g guest) error { return g.mkdir(path) }
	case "remove":
		return func(g guest) error { return g.rm(path) }
	case "rename":
		return func(g guest) error { return g.mv(path, to) }
	}
	return func(g guest) error {
		if size == 1 {
			path = "."
		}
		return g.touch(path, time.Unix(int64(off), int64(size)).UTC())
	}
})

func different(a, b map[string]seen) string {
	var out strings.Builder
	for _, p := range slices.Sorted(maps.Keys(a)) {
		x, y := a[p], b[p]
		if _, ok := b[p]; !ok {
			fmt.Fprintf(&out, "%s: not in the second\n", p)
		} else if !reflect.DeepEqual(x, y) {
			same := x.Content == y.Content
			x.Content, y.Content = "", ""
			fmt.Fprintf(&out, "%s:\n  %+v\n  %+v\n  same content: %v\n", p, x, y, same)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			fmt.Fprintf(&out, "%s: not in the first\n", p)
		}
	}
	return out.String()
}

// TestShadow compares what a call's overlay shows with what a new snapshot shows
// after its commit: nothing that a guest can look at tells them apart.
func TestShadow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { shadow(rt, newCounted()) })
}

func shadow(rt *rapid.T, s *counted) {
	for range rapid.IntRange(1, 3).Draw(rt, "commits") {
		base := now(rt, s)
		g := over(rt, base)
		for _, do := range rapid.SliceOfN(plays, 0, 25).Draw(rt, "plays") {
			_ = do(g)
		}
		want := image(rt, g.Result())
		c := g.change(rt)
		tree := base
		if rapid.Bool().Draw(rt, "parked") {
			tree = now(rt, s)
		}
		must(rt, apply(rt.Context(), s, tree, c))
		if d := different(want, image(rt, now(rt, s))); d != "" {
			rt.Fatalf("shadow and commit differ:\n%s", d)
		}
		must(rt, g.Close())
		orphans(rt, s)
	}
}

// orphans fails when there are keys that belong to no path.
func orphans(t tester, s *counted) {
	t.Helper()
	snapshot, err := s.Snapshot(t.Context())
	must(t, err)
	all, err := snapshot.Scan(t.Context(), store.Range{Space: space}, 1<<20)
	must(t, err)
	want := map[string]bool{timeName("."): true}
	for path, x := range image(t, now(t, s)) {
		if path == "." {
			continue
		}
		want[entryName(path)] = true
		if x.Kind == volume.Dir {
			want[timeName(path)] = true
		} else {
			want[contentName(path)] = true
		}
	}
	for _, e := range all {
		if !want[e.Name] {
			t.Fatalf("key %q belongs to nothing", e.Name)
		}
	}
	if len(all) < len(want)-1 {
		t.Fatalf("%d keys, want %d", len(all), len(want))
	}
}

// growTree makes a random folder.
func growTree(rt *rapid.T, dir string) {
	must(rt, os.Mkdir(dir, 0o755))
	for range rapid.IntRange(0, 8).Draw(rt, "files") {
		p := filepath.Join(dir, genPath.Draw(rt, "path"))
		if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			continue // a file is in the way
		}
		if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
			_ = os.Mkdir(p, 0o700)
			continue
		}
		if _, err := os.Lstat(p); err != nil {
			data := bytes.Repeat([]byte{'b'}, genSize.Draw(rt, "size"))
			must(rt, os.WriteFile(p, data, rapid.SampledFrom([]os.FileMode{0o600, 0o644, 0o755}).Draw(rt, "mode")))
		}
	}
}

// TestLikeHostDir does the same in a folder and in a managed volume that was
// imported from it: each operation answers alike, and so do the trees after the
// commit.
func TestLikeHostDir(t *testing.T) {
	scratch := quickDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(scratch, "run")
		must(rt, err)
		defer os.RemoveAll(top)
		dir := filepath.Join(top, "v")
		growTree(rt, dir)
		must(rt, os.Chtimes(dir, time.Time{}, time.Unix(1000, 7)))
		s := newCounted()
		_, err = Import(rt.Context(), s, space, os.DirFS(dir), ImportOptions{})
		must(rt, err)
		h, err := volume.OpenDir(dir)
		must(rt, err)
		defer h.Close()
		base := now(rt, s)
		if d := different(image(rt, h), image(rt, base)); d != "" {
			rt.Fatalf("folder and import differ:\n%s", d)
		}
		a, b := over(rt, h), over(rt, base)
		defer a.Close()
		defer b.Close()
		for _, do := range rapid.SliceOfN(plays, 0, 25).Draw(rt, "plays") {
			if x, y := do(a), do(b); !errors.Is(x, y) || !errors.Is(y, x) {
				rt.Fatalf("folder %v, managed %v", x, y)
			}
		}
		must(rt, h.Apply(rt.Context(), a.change(rt)))
		must(rt, apply(rt.Context(), s, base, b.change(rt)))
		if d := different(image(rt, h), image(rt, now(rt, s))); d != "" {
			rt.Fatalf("folder and managed volume differ:\n%s", d)
		}
	})
}

// TestConflictsLikeHostDir lets a second call change what a first one has seen,
// or something else: both sorts of volume say conflict, or both do not.
func TestConflictsLikeHostDir(t *testing.T) {
	scratch := quickDir(t)
	conflicts, fine := 0, 0
	enough.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(scratch, "run")
		must(rt, err)
		defer os.RemoveAll(top)
		dir := filepath.Join(top, "v")
		growTree(rt, dir)
		s := newCounted()
		_, err = Import(rt.Context(), s, space, os.DirFS(dir), ImportOptions{})
		must(rt, err)
		h, err := volume.OpenDir(dir)
		must(rt, err)
		defer h.Close()
		first := rapid.SliceOfN(plays, 1, 6).Draw(rt, "first")
		second := rapid.SliceOfN(plays, 1, 3).Draw(rt, "second")

		a := over(rt, h)
		defer a.Close()
		base := now(rt, s)
		b := over(rt, base)
		defer b.Close()
		for _, do := range first {
			_, _ = do(a), do(b)
		}
		mine, parked := a.change(rt), b.change(rt)
		other := over(rt, h)
		defer other.Close()
		tree := now(rt, s)
		managed := over(rt, tree)
		defer managed.Close()
		for _, do := range second {
			_, _ = do(other), do(managed)
		}
		theirs := managed.change(rt)
		must(rt, h.Apply(rt.Context(), other.change(rt)))
		must(rt, apply(rt.Context(), s, tree, theirs))

		from := rapid.SampledFrom([]*Tree{base, now(rt, s)}).Draw(rt, "tree")
		x, y := h.Apply(rt.Context(), mine), apply(rt.Context(), s, from, parked)
		switch {
		case x == nil && y == nil:
			fine++
			if d := different(without(image(rt, h)), without(image(rt, now(rt, s)))); d != "" {
				rt.Fatalf("folder and managed volume differ:\n%s", d)
			}
		case isConflict(x) && isConflict(y):
			conflicts++
		case x == nil && isConflict(y) && madeAnew(theirs):
			// A directory that was made anew is another one in a store.
		default:
			rt.Fatalf("folder %v, managed %v", x, y)
		}
	}, func() string {
		if conflicts == 0 || fine == 0 {
			return fmt.Sprintf("%d conflicts, %d without", conflicts, fine)
		}
		return ""
	})
}

// without leaves out the times of directories: of two calls that put files into
// one, either may be the last.
func without(all map[string]seen) map[string]seen {
	for p, s := range all {
		if s.Kind == volume.Dir {
			s.ModTime = time.Time{}
			all[p] = s
		}
	}
	return all
}

// madeAnew reports whether a change removes a directory: it may come back.
func madeAnew(c *volume.Change) bool {
	return slices.ContainsFunc(c.Steps, func(s volume.Step) bool {
		return s.Action == volume.ActRemove && slices.ContainsFunc(c.Guards, func(g volume.Guard) bool {
			return g.Path == s.Path && g.Stamp.Kind == volume.Dir
		})
	})
}

func quickDir(t testing.TB) string {
	t.Helper()
	where := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		where = "/dev/shm"
	}
	dir, err := os.MkdirTemp(where, "stored")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestAssembly compares files that are made of kept bytes and extents with the
// bytes that they should have.
func TestAssembly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newCounted()
		old := rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(rt, "pattern")
		was := bytes.Repeat(old, genSize.Draw(rt, "was")/len(old)+1)
		plant(rt, s, map[string]string{"f": string(was)})
		tree := now(rt, s)
		_, st, err := tree.Lstat("f")
		must(rt, err)
		size := genSize.Draw(rt, "size")
		keep := min(size, len(was), genSize.Draw(rt, "keep"))
		want := make([]byte, size)
		copy(want, was[:keep])
		step := volume.Step{
			Action: volume.ActPut, Path: "f", Base: "f", Keep: int64(keep), Size: int64(size), Mode: 0o600, ModTime: at(),
		}
		for range rapid.IntRange(0, 4).Draw(rt, "extents") {
			off := rapid.IntRange(0, size).Draw(rt, "off")
			data := bytes.Repeat([]byte{genFill.Draw(rt, "fill")}, min(size-off, genSize.Draw(rt, "length")))
			copy(want[off:], data)
			step.Extents = append(step.Extents, volume.Extent{Offset: int64(off), Data: data})
		}
		c := &volume.Change{Guards: []volume.Guard{{Path: "f", Stamp: st}}, Steps: []volume.Step{step}}
		must(rt, apply(rt.Context(), s, tree, decoded(rt, c)))
		if got := image(rt, now(rt, s))["f"]; got.Content != string(want) || got.Size != int64(size) {
			rt.Fatalf("%d bytes, not what they should be", len(got.Content))
		}
	})
}
