package stored

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func TestLookups(t *testing.T) {
	s := planted(t, map[string]string{"d/f": "hello", "d/e/": "", "g": ""})
	tree := now(t, s)
	for _, c := range []struct {
		path string
		kind volume.Kind
		size int64
		err  error
	}{
		{path: ".", kind: volume.Dir},
		{path: "d", kind: volume.Dir},
		{path: "d/e", kind: volume.Dir},
		{path: "d/f", size: 5},
		{path: "g"},
		{path: "x", err: capabilities.ENOENT},
		{path: "d/x", err: capabilities.ENOENT},
		{path: "x/y/z", err: capabilities.ENOENT},
		{path: "d/f/x", err: capabilities.ENOTDIR},
		{path: "d/f/x/y", err: capabilities.ENOTDIR},
		{path: ".sandboxd-x", err: capabilities.ENOENT},
		{path: "d\x00f", err: capabilities.ENOENT},
		{path: "../d", err: capabilities.ENOENT},
		{path: strings.Repeat("x", 5000), err: capabilities.ENOENT},
	} {
		info, st, err := tree.Lstat(c.path)
		if !errors.Is(err, c.err) || info.Kind != c.kind || info.Size != c.size || st.Exists != (c.err == nil) {
			t.Errorf("%.20q: %+v, %+v, %v", c.path, info, st, err)
		}
		if c.err == nil && info.Inode != volume.InodeOf(c.path) {
			t.Errorf("%q: inode %d", c.path, info.Inode)
		}
		if _, err := tree.Readlink(c.path); !errors.Is(err, cond(c.err != nil, c.err, capabilities.EINVAL)) {
			t.Errorf("readlink %.20q: %v", c.path, err)
		}
		_, err = tree.Open(c.path)
		if want := cond(c.err == nil && c.kind == volume.Dir, error(capabilities.EISDIR), c.err); !errors.Is(err, want) {
			t.Errorf("open %.20q: %v", c.path, err)
		}
		_, err = tree.ReadDir(c.path)
		if want := cond(c.err == nil && c.kind == volume.File, error(capabilities.ENOTDIR), c.err); !errors.Is(err, want) {
			t.Errorf("readdir %.20q: %v", c.path, err)
		}
	}
}

func cond(is bool, a, b error) error {
	if is {
		return a
	}
	return b
}

// The root of a volume that nobody has written to is there.
func TestEmpty(t *testing.T) {
	tree := now(t, newCounted())
	info, st, err := tree.Lstat(".")
	must(t, err)
	if info.Kind != volume.Dir || info.Mode != volume.RootMode || !info.ModTime.Equal(time.Unix(0, 0)) || st.Version != 0 || !st.Exists {
		t.Errorf("%+v %+v", info, st)
	}
	list, hidden, err := tree.List(".")
	if err != nil || list == nil || len(list) != 0 || hidden {
		t.Errorf("%v %v %v", list, hidden, err)
	}
}

// A directory is read in pages, and names are in the order of their bytes.
func TestLargeDirectory(t *testing.T) {
	files := map[string]string{}
	for i := range 2*pageSize + 1 {
		files[fmt.Sprintf("d/%d", i)] = ""
	}
	files["d/é"], files["d/\x01"], files["d/ "], files["d0"], files["d/0/"] = "", "", "", "", ""
	delete(files, "d/0")
	s := planted(t, files)
	tree := now(t, s)
	list, err := tree.ReadDir("d")
	must(t, err)
	if len(list) != len(files)-1 || !slices.IsSortedFunc(list, func(a, b volume.Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d names", len(list))
	}
	if list[0].Name != "\x01" || list[1].Name != " " || list[2].Name != "0" || list[2].Kind != volume.Dir {
		t.Errorf("%+v", list[:3])
	}
	if n := s.reset()["scan"]; n != 3 {
		t.Errorf("%d scans", n)
	}
	list[0].Name = "mine"
	again, err := tree.ReadDir("d")
	if err != nil || again[0].Name != "\x01" {
		t.Errorf("the list is not the caller's: %v, %v", again[0], err)
	}
}

// Nothing is read twice in a call, and what a listing has told is not asked for.
func TestReadOnce(t *testing.T) {
	s := planted(t, map[string]string{"d/f": "hello", "d/e/x": "", "big": strings.Repeat("x", 2*chunkSize)})
	tree := now(t, s)
	_, _, err := tree.Lstat("d/e") // its time too
	must(t, err)
	for range 3 {
		image(t, tree)
		for _, p := range []string{"no", "d/no", "no/no", "d/f/no"} {
			if _, _, err := tree.Lstat(p); err == nil {
				t.Errorf("%s is there", p)
			}
		}
	}
	g := over(t, tree)
	must(t, g.mv("d", "moved"))
	must(t, g.write("big", []byte("y"), 5))
	_, _, _, err = tree.Writes(t.Context(), g.change(t))
	must(t, err)
	for key, n := range s.keys {
		if n > 1 {
			t.Errorf("%q read %d times", key, n)
		}
	}
	for _, listed := range []string{"d/f", "d/e/x", "big", "d"} {
		if n := s.keys[entryName(listed)]; n > 0 {
			t.Errorf("%q asked for after it was listed", listed)
		}
	}
	if n := s.count["snapshot"]; n != 1 {
		t.Errorf("%d snapshots", n)
	}
	if n := s.count["scan"]; n != 3 {
		t.Errorf("%d scans", n)
	}
}

// A call that reads nothing takes no snapshot.
func TestLazy(t *testing.T) {
	s := newCounted()
	tree := now(t, s)
	over(t, tree).Root()
	guards, ranges, writes, err := tree.Writes(t.Context(), &volume.Change{})
	if err != nil || len(guards)+len(ranges)+len(writes) != 0 {
		t.Errorf("%v %v %v %v", guards, ranges, writes, err)
	}
	if n := s.count["snapshot"]; n != 0 {
		t.Errorf("%d snapshots", n)
	}
}

// What is remembered is bounded, and what was forgotten is read again.
func TestCacheBounds(t *testing.T) {
	var c cache
	for i := range 3 * maxNodes {
		c.put(fmt.Sprint(i), node{exists: true})
		if len(c.nodes) > maxNodes {
			t.Fatalf("%d nodes", len(c.nodes))
		}
	}
	c.putList("d", make([]volume.Entry, maxNodes))
	c.put("x", node{})
	if len(c.lists) != 0 || len(c.nodes) != 1 || c.names != 0 {
		t.Errorf("%d lists, %d nodes", len(c.lists), len(c.nodes))
	}
	for i := range 200 {
		c.putContent(fmt.Sprint(i), content{inline: make([]byte, maxInline)})
		if c.bytes > maxContents || len(c.contents)*maxInline > maxContents {
			t.Fatalf("%d contents, %d bytes", len(c.contents), c.bytes)
		}
	}
	before := len(c.contents)
	c.putContent("large", content{inline: make([]byte, maxContents)})
	if len(c.contents) != before {
		t.Errorf("a large content is held")
	}
}

// A snapshot does not see what is committed later.
func TestSnapshot(t *testing.T) {
	s := planted(t, map[string]string{"f": "old", "gone": "x"})
	tree := now(t, s)
	_, _, err := tree.Lstat("f")
	must(t, err)
	other := now(t, s)
	g := over(t, other)
	must(t, g.write("f", []byte("new and longer"), 0))
	must(t, g.write("made", nil, 0))
	must(t, g.rm("gone"))
	must(t, apply(t.Context(), s, other, g.change(t)))
	all := image(t, tree)
	if all["f"].Content != "old" || all["gone"].Content != "x" || len(all) != 3 {
		t.Errorf("%v", all)
	}
}

// Several goroutines read one file, and one tree.
func TestConcurrent(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 5*chunkSize/32)
	s := planted(t, map[string]string{"big": string(want), "d/small": "small"})
	tree := now(t, s)
	f, err := tree.Open("big")
	must(t, err)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for off := int64(i * 1000); off < int64(len(want)); off += 100_003 {
				b := make([]byte, 1234)
				n, err := f.ReadAt(b, off)
				if end := min(off+1234, int64(len(want))); !bytes.Equal(b[:n], want[off:end]) || (err != nil && !errors.Is(err, io.EOF)) {
					t.Errorf("at %d: %d bytes, %v", off, n, err)
				}
			}
			if _, err := tree.ReadDir("d"); err != nil {
				t.Error(err)
			}
			if _, _, err := tree.Lstat(fmt.Sprint("x", i)); !errors.Is(err, capabilities.ENOENT) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(t, f.Close())
}

func TestReadAt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := genSize.Draw(rt, "size")
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i / 3)
		}
		if rapid.Bool().Draw(rt, "hole") {
			clear(want[:min(size, chunkSize)])
		}
		s := planted(rt, map[string]string{"f": string(want)})
		f, err := now(rt, s).Open("f")
		must(rt, err)
		for range 5 {
			off, n := genSize.Draw(rt, "off"), genSize.Draw(rt, "n")
			b := make([]byte, n)
			got, err := f.ReadAt(b, int64(off))
			rest := want[min(off, size):]
			if wantN := min(n, len(rest)); got != wantN || !bytes.Equal(b[:got], rest[:got]) || (got < n) != errors.Is(err, io.EOF) && n > 0 {
				rt.Fatalf("%d of %d at %d: %d, %v", n, size, off, got, err)
			}
		}
		must(rt, f.Close())
	})
}

func TestContentMisused(t *testing.T) {
	s := planted(t, map[string]string{"f": "hello"})
	f, err := now(t, s).Open("f")
	must(t, err)
	if _, err := f.ReadAt(make([]byte, 1), -1); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("negative: %v", err)
	}
	must(t, f.Close())
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, capabilities.EBADF) {
		t.Errorf("closed: %v", err)
	}
	if err := f.Close(); !errors.Is(err, capabilities.EBADF) {
		t.Errorf("closed twice: %v", err)
	}
}

// What the store says is EIO for a guest, and the store's for the host; what is
// no longer kept was replaced.
func TestStoreFails(t *testing.T) {
	broken := errors.New("disk on fire")
	s := planted(t, map[string]string{"d/f": strings.Repeat("x", chunkSize)})
	for _, op := range []string{"snapshot", "get", "scan", "blob"} {
		s.fault = func(at string) error {
			if at == op {
				return broken
			}
			return nil
		}
		tree := now(t, s)
		_, _, lerr := tree.Lstat("d/f")
		_, derr := tree.ReadDir("d")
		f, ferr := tree.Open("d/f")
		if ferr == nil {
			_, ferr = f.ReadAt(make([]byte, 10), 0)
		}
		err := errors.Join(lerr, derr, ferr)
		if !errors.Is(err, broken) || !errors.Is(err, capabilities.EIO) || errors.Is(err, volume.ErrConflict) {
			t.Errorf("%s: %v", op, err)
		}
		s.fault = nil
		if op == "snapshot" { // asked again, not remembered
			if _, _, err := tree.Lstat("d/f"); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		}
	}
	s.fault = func(op string) error { return map[string]error{"blob": store.ErrGone}[op] }
	f, err := now(t, s).Open("d/f")
	must(t, err)
	if _, err = f.ReadAt(make([]byte, 10), 0); !errors.Is(err, volume.ErrConflict) || !errors.Is(err, store.ErrGone) {
		t.Errorf("gone: %v", err)
	}
	if _, _, err := New(t.Context(), Options{}).Lstat("f"); !errors.Is(err, errUnset) {
		t.Errorf("no store: %v", err)
	}
}

// When the call ends its volume cannot be read any more.
func TestContextEnds(t *testing.T) {
	s := planted(t, map[string]string{"f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	tree := New(ctx, Options{Reader: s.Snapshot, Blobs: s, Space: space})
	cancel()
	if _, _, err := tree.Lstat("f"); !errors.Is(err, context.Canceled) || !errors.Is(err, capabilities.EIO) {
		t.Errorf("%v", err)
	}
}

// Values that this package has not written are EIO, and never a wrong file.
func TestCorrupt(t *testing.T) {
	big := strings.Repeat("x", chunkSize+1)
	for name, w := range map[string]store.Write{
		"entry":         {Key: store.Key{Space: space, Name: entryName("f")}, Value: []byte("junk")},
		"content":       {Key: store.Key{Space: space, Name: contentName("f")}, Value: []byte("junk")},
		"no content":    {Key: store.Key{Space: space, Name: contentName("f")}, Delete: true},
		"other size":    {Key: store.Key{Space: space, Name: contentName("f")}, Value: content{inline: []byte("x")}.encode()},
		"piece missing": {Key: store.Key{Space: space, Name: contentName("f")}, Value: content{chunks: []store.Digest{{1}}}.encode()},
	} {
		s := planted(t, map[string]string{"f": big})
		_, err := s.Commit(t.Context(), &store.Commit{ID: "x", Writes: []store.Write{w}})
		must(t, err)
		f, err := now(t, s).Open("f")
		if err == nil {
			t.Errorf("%s: %v", name, f)
		}
		if !errors.Is(err, capabilities.EIO) || !errors.Is(err, errForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := planted(t, map[string]string{"f": big})
	d, err := s.PutBlob(t.Context(), []byte("short"))
	must(t, err)
	_, err = s.Commit(t.Context(), &store.Commit{ID: "x", Writes: []store.Write{
		{Key: store.Key{Space: space, Name: contentName("f")}, Value: content{chunks: []store.Digest{d, d}}.encode()},
		{Key: store.Key{Space: space, Name: timeName(".")}, Value: []byte("junk")},
	}})
	must(t, err)
	f, err := now(t, s).Open("f")
	must(t, err)
	if _, err := f.ReadAt(make([]byte, 10), 0); !errors.Is(err, errForm) {
		t.Errorf("short piece: %v", err)
	}
	if _, _, err := now(t, s).Lstat("."); !errors.Is(err, errForm) {
		t.Errorf("time: %v", err)
	}
}
