package volume

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
)

// TestBodyLikeBytes compares a body with a slice of bytes.
func TestBodyLikeBytes(t *testing.T) {
	old := bytes.Repeat([]byte("0123456789abcdef-"), 3*chunkSize/17)
	rapid.Check(t, func(t *rapid.T) {
		base := old[:rapid.SampledFrom([]int{0, 1, chunkSize, chunkSize + 1, len(old)}).Draw(t, "base")]
		b := body{keep: int64(len(base)), size: int64(len(base))}
		want := bytes.Clone(base)
		src := func() (io.ReaderAt, error) { return bytes.NewReader(base), nil }
		var held int64
		take := func(n int64) error { held += n; return nil }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				off := rapid.IntRange(0, 4*chunkSize).Draw(t, "off")
				p := bytes.Repeat([]byte("#"), rapid.SampledFrom([]int{1, 7, 600, chunkSize, 2*chunkSize + 1}).Draw(t, "n"))
				n, err := b.writeAt(src, take, p, int64(off))
				if n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				if off+len(p) > len(want) {
					want = append(want, make([]byte, off+len(p)-len(want))...)
				}
				copy(want[off:], p)
			},
			"truncate": func(t *rapid.T) {
				size := rapid.IntRange(0, 4*chunkSize).Draw(t, "size")
				held -= b.truncate(int64(size))
				if size > len(want) {
					want = append(want, make([]byte, size-len(want))...)
				}
				want = want[:size]
			},
			"": func(t *rapid.T) {
				if b.size != int64(len(want)) || held != b.memory() {
					t.Fatalf("size %d, want %d; %d bytes charged for %d", b.size, len(want), held, b.memory())
				}
				off := rapid.IntRange(0, len(want)).Draw(t, "read")
				got := make([]byte, len(want)-off)
				if err := b.readAt(src, got, int64(off)); err != nil || !bytes.Equal(got, want[off:]) {
					t.Fatalf("content differs: %v", err)
				}
			},
		})
	})
}

func isLimit(t *testing.T, what string, err error, resource string) {
	t.Helper()
	if l, ok := errors.AsType[*LimitError](err); !ok || l.Resource != resource {
		t.Errorf("%s: %v, want the limit of %s", what, err, resource)
	}
}

func limited(b Base, bytes, files int64) *guest {
	return &guest{New(b, Options{Budget: &Budget{Bytes: bytes, Files: files}})}
}

func TestBudgetBytes(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "0123456789"})
	for what, call := range map[string]func(*guest, *Node) error{
		"sparse write": func(g *guest, n *Node) error { _, err := g.WriteAt(n, []byte("x"), 1<<50); return err },
		"huge size":    func(g *guest, n *Node) error { return g.Truncate(n, 1<<50) },
		"largest size": func(g *guest, n *Node) error { return g.Truncate(n, math.MaxInt64) },
		"large write":  func(g *guest, n *Node) error { _, err := g.WriteAt(n, make([]byte, 2<<20), 0); return err },
		"by and by": func(g *guest, n *Node) error {
			for off := int64(0); off < 2<<20; off += 1000 {
				if _, err := g.WriteAt(n, make([]byte, 1000), off); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		g := limited(h, 1<<20, 10)
		n, err := g.node("f", true)
		must(t, err)
		isLimit(t, what, call(g, n), limitWrites)
		if used, _ := g.budget.Used(); used > 1<<20 {
			t.Errorf("%s: %d bytes held", what, used)
		}
	}
	// Many files of which each is small enough.
	g := limited(h, 1<<20, 1000)
	var err error
	for i := 0; i < 10 && err == nil; i++ {
		if err = g.write(strconv.Itoa(i), "", 0); err == nil {
			n, _ := g.node(strconv.Itoa(i), true)
			err = g.Truncate(n, 300<<10)
		}
	}
	isLimit(t, "holes in many files", err, limitWrites)
}

// A size whose sum with what is used overflows is over the limit too.
func TestBudgetOverflow(t *testing.T) {
	g := limited(nil, 1<<20, 1000)
	must(t, g.write("small", "x", 0))
	must(t, g.write("f", "", 0))
	n, err := g.node("f", true)
	must(t, err)
	isLimit(t, "largest size of a second file", g.Truncate(n, math.MaxInt64), limitWrites)
}

func TestBudgetFiles(t *testing.T) {
	h, _ := planted(t, map[string]string{"a": "a", "b": "b", "c": "c", "d/1": "1", "d/2": "2", "d/3": "3"})
	for what, call := range map[string]func(*guest, int) error{
		"made":             func(g *guest, i int) error { return g.write("n"+strconv.Itoa(i), "", 0) },
		"directories made": func(g *guest, i int) error { return g.mkdir("n" + strconv.Itoa(i)) },
		"changed":          func(g *guest, i int) error { return g.write([]string{"a", "b", "c"}[i], "x", 0) },
		"removed":          func(g *guest, i int) error { return g.rm([]string{"a", "b", "c"}[i]) },
		"moved":            func(g *guest, i int) error { return g.mv([]string{"a", "b", "c"}[i], "n"+strconv.Itoa(i)) },
	} {
		g := limited(h, 1<<20, 2)
		must(t, call(g, 0))
		must(t, call(g, 1))
		isLimit(t, what, call(g, 2), limitFiles)
		c, err := g.Change()
		if err != nil || c.Empty() {
			t.Errorf("%s: what was within the limit: %v", what, err)
		}
	}
	g := limited(h, 1<<20, 3)
	must(t, g.mv("d", "e"))
	_, err := g.Change()
	isLimit(t, "a directory with files moved", err, limitFiles)
	g = limited(h, 1<<20, 4)
	must(t, g.mv("d", "e"))
	must(t, g.commit(t, h))
}

// What was moved counts where it arrives, also where something else was moved
// away: directories that change places change all files in both.
func TestBudgetSwappedDirectories(t *testing.T) {
	h, _ := planted(t, map[string]string{
		"a/1": "a", "a/2": "a", "a/3": "a", "b/1": "bb", "b/2": "bb", "b/3": "bb",
	})
	swap := func(files int64) (*Change, error) {
		g := limited(h, 1<<20, files)
		defer g.Close()
		must(t, g.mv("a", "t"))
		must(t, g.mv("b", "a"))
		must(t, g.mv("t", "b"))
		return g.Change()
	}
	_, err := swap(5)
	isLimit(t, "six files for a budget of five", err, limitFiles)
	if c, err := swap(6); err != nil || len(c.Steps) != 6 {
		t.Errorf("six files for a budget of six: %v", err)
	}
}

// The volumes of a call share its budget, also for what only the end shows.
func TestBudgetOfVolumes(t *testing.T) {
	b := &Budget{Bytes: 1 << 20, Files: 5}
	var guests []*guest
	for range 2 {
		h, _ := planted(t, map[string]string{"d/1": "1", "d/2": "2"})
		g := &guest{New(h, Options{Budget: b})}
		defer g.Close()
		must(t, g.mv("d", "e"))
		guests = append(guests, g)
	}
	for range 3 { // asking again costs nothing
		_, err := guests[0].Change()
		must(t, err)
	}
	_, err := guests[1].Change()
	isLimit(t, "two times three files for a budget of five", err, limitFiles)
	must(t, guests[0].mv("e", "d"))
	_, err = guests[0].Change()
	must(t, err)
	_, err = guests[1].Change()
	must(t, err)
}

// Files that come and go within a call cost nothing in the end.
func TestBudgetReturned(t *testing.T) {
	g := limited(nil, 1<<20, 2)
	for range 100 {
		must(t, g.write("f", string(make([]byte, 500<<10)), 0))
		must(t, g.mv("f", "g"))
		must(t, g.rm("g"))
	}
	must(t, g.write("f", "", 0))
	n, err := g.node("f", true)
	must(t, err)
	for range 100 {
		must(t, g.Truncate(n, 900<<10))
		must(t, g.Truncate(n, 0))
	}
	must(t, g.write("g", string(make([]byte, 900<<10)), 0))
	must(t, g.rm("g"))
	must(t, g.rm("f"))
	if bytes, files := g.budget.Used(); bytes != 0 || files != 0 {
		t.Errorf("%d bytes and %d files are held", bytes, files)
	}
}

func TestNoBudget(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "old"})
	g := &guest{New(h, Options{})}
	defer g.Close()
	isLimit(t, "create", g.write("new", "x", 0), limitWrites)
	isLimit(t, "write", g.write("f", "x", 0), limitFiles)
	isLimit(t, "remove", g.rm("f"), limitFiles)
	if got := g.content(t, "f"); got != "old" {
		t.Errorf("content %q", got)
	}
	must(t, g.commit(t, h))
}

// A guest cannot make the host remember any number of names that do not exist,
// nor of listings, in all volumes of a call together.
func TestLookupsBounded(t *testing.T) {
	h, _ := planted(t, map[string]string{"d/1": "", "d/2": "", "e/1": "", "f": ""})
	for what, call := range map[string]func(*guest, int) error{
		"missing": func(g *guest, i int) error {
			_, err := g.Walk(g.Root(), "none"+strconv.Itoa(i), true)
			return err
		},
		"listed": func(g *guest, i int) error {
			n, err := g.node([]string{".", "d", "e"}[i%3], true)
			if err != nil {
				return err
			}
			_, err = g.List(n)
			return err
		},
		"asked whether empty": func(g *guest, i int) error {
			n, err := g.node([]string{".", "d", "e"}[i%3], true)
			if err != nil {
				return err
			}
			_, err = g.Empty(n)
			return err
		},
	} {
		b := &Budget{Seen: 2 * noteCost}
		var err error
		for i := 0; i < 6 && err == nil; i++ {
			g := &guest{New(h, Options{Budget: b})}
			err = call(g, i)
			must(t, g.Close())
		}
		isLimit(t, what, err, limitPaths)
	}
}

func TestLookupsDefault(t *testing.T) {
	b := &Budget{}
	must(t, b.take(cost{seen: DefaultSeen}))
	isLimit(t, "default", b.take(cost{seen: 1}), limitPaths)
}

func TestContentErrors(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "old", "d/": "", "l": "->f"})
	g := overlay(t, h)
	for path, want := range map[string]error{"d": capabilities.EISDIR, "l": capabilities.EINVAL} {
		n, err := g.node(path, false)
		must(t, err)
		_, rerr := g.ReadAt(n, make([]byte, 1), 0)
		_, werr := g.WriteAt(n, make([]byte, 1), 0)
		for _, err := range []error{rerr, werr, g.Truncate(n, 0)} {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
	}
	n, err := g.node("f", true)
	must(t, err)
	if _, err := g.ReadAt(n, make([]byte, 1), -1); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("negative offset: %v", err)
	}
	if _, err := g.WriteAt(n, make([]byte, 2), math.MaxInt64-1); !errors.Is(err, capabilities.EFBIG) {
		t.Errorf("offset too large: %v", err)
	}
	if err := g.Truncate(n, -1); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("negative size: %v", err)
	}
}

// A base file that became shorter while it is read is a conflict, not zeros.
func TestBaseShrinks(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "0123456789"})
	g := overlay(t, h)
	n, err := g.node("f", true)
	must(t, err)
	must(t, overwriteAll(dir, "f", "0"))
	if _, err := g.ReadAt(n, make([]byte, 5), 0); !errors.Is(err, ErrConflict) {
		t.Errorf("read: %v", err)
	}
}

// A write that needs old bytes which cannot be read changes nothing and holds
// no memory.
func TestWriteUnreadable(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "0123456789"})
	g := overlay(t, h)
	n, err := g.node("f", true)
	must(t, err)
	must(t, removed("f")(dir))
	if done, err := g.WriteAt(n, []byte("X"), 3); done != 0 || !errors.Is(err, ErrConflict) {
		t.Errorf("write: %d, %v", done, err)
	}
	if used, _ := g.budget.Used(); used != 0 {
		t.Errorf("%d bytes held", used)
	}
}

// An empty tree holds what a call makes, and has nothing else.
func TestMem(t *testing.T) {
	g := overlay(t, nil)
	must(t, g.mkdir("d"))
	must(t, g.write("d/f", "hello", 0))
	list, err := g.List(g.Root())
	if err != nil || len(list) != 1 || list[0].Name != "d" {
		t.Errorf("list %+v, %v", list, err)
	}
	if info, err := g.Info(g.Root()); err != nil || info.Kind != Dir {
		t.Errorf("root %+v, %v", info, err)
	}
	if got := g.content(t, "d/f"); got != "hello" {
		t.Errorf("content %q", got)
	}
	if _, err := g.node("none", true); !errors.Is(err, capabilities.ENOENT) {
		t.Errorf("missing: %v", err)
	}
}

// memory returns the bytes of memory that the chunks hold.
func (b *body) memory() int64 {
	var n int64
	for _, c := range b.chunks {
		n += int64(cap(c))
	}
	return n
}
