package tx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folder returns a volume that holds the file "f" with the content "old".
func folder(t testing.TB, name string) (Volume, string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o644))
	h, err := volume.OpenDir(dir)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return Volume{Name: name, Path: "/" + name, Store: h}, filepath.Join(dir, "f")
}

func begin(vols ...Volume) *Tx {
	return Begin(Parts{Volumes: vols}, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 100}})
}

func write(t testing.TB, o *volume.Overlay, path, data string) {
	t.Helper()
	p, err := o.Walk(o.Root(), path, true)
	must(t, err)
	n := p.Node
	if n == nil {
		n, err = o.Create(p)
		must(t, err)
	}
	must(t, o.Truncate(n, 0))
	_, err = o.WriteAt(n, []byte(data), 0)
	must(t, err)
}

func read(t testing.TB, o *volume.Overlay, path string) {
	t.Helper()
	p, err := o.Walk(o.Root(), path, true)
	must(t, err)
	_, err = o.ReadAt(p.Node, make([]byte, 1), 0)
	must(t, err)
}

func holds(t testing.TB, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s: %q, %v, want %q", path, b, err, want)
	}
}

func TestCommit(t *testing.T) {
	a, fileA := folder(t, "a")
	b, fileB := folder(t, "b")
	x := begin(b, a)
	write(t, x.Overlay("a"), "f", "new a")
	write(t, x.Overlay("b"), "f", "new b")
	var judged []int
	p, err := x.Prepare(t.Context(),
		func(context.Context, *Prepared, View) error { judged = append(judged, 1); return nil },
		func(context.Context, *Prepared, View) error { judged = append(judged, 2); return nil })
	must(t, err)
	if len(judged) != 2 || judged[0] != 1 || p.Empty() {
		t.Errorf("judges %v, empty %v", judged, p.Empty())
	}
	holds(t, fileA, "old")
	must(t, x.Commit(t.Context(), p, store.Commit{}))
	holds(t, fileA, "new a")
	holds(t, fileB, "new b")
}

// A prepared change survives encoding, and a process that has not run the call
// can commit it.
func TestCommitElsewhere(t *testing.T) {
	a, file := folder(t, "a")
	x := begin(a)
	write(t, x.Overlay("a"), "f", "new")
	p, err := x.Prepare(t.Context())
	must(t, err)
	must(t, x.Rollback())
	b, err := json.Marshal(p)
	must(t, err)
	var decoded Prepared
	must(t, json.Unmarshal(b, &decoded))
	if len(decoded.Effects) != 1 || decoded.Effects[0].Object != "/a/f" {
		t.Errorf("effects %+v", decoded.Effects)
	}
	must(t, begin(a).Commit(t.Context(), &decoded, store.Commit{}))
	holds(t, file, "new")
}

func TestJudgeRefuses(t *testing.T) {
	a, file := folder(t, "a")
	x := begin(a)
	write(t, x.Overlay("a"), "f", "new")
	_, err := x.Prepare(t.Context(),
		func(_ context.Context, p *Prepared, _ View) error {
			return &capabilities.Violation{
				Hint: capabilities.DestructiveHint, Operation: capabilities.OpCommit,
				Object: p.Effects[0].Object, Phase: capabilities.PhaseCommit,
			}
		},
		func(context.Context, *Prepared, View) error { t.Error("judged after a refusal"); return nil })
	if v, ok := errors.AsType[*capabilities.Violation](err); !ok || v.Object != "/a/f" {
		t.Errorf("prepare: %v", err)
	}
	must(t, x.Rollback())
	holds(t, file, "old")
}

// What only one volume's guards refuse changes none of them, whichever it is,
// and a call that only read is refused too.
func TestConflict(t *testing.T) {
	for _, c := range []struct {
		name, changed string
		writes        []string
	}{
		{"first of two", "a", []string{"a", "b"}},
		{"second of two", "b", []string{"a", "b"}},
		{"only read", "b", []string{"a"}},
		{"nothing written", "b", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, fileA := folder(t, "a")
			b, fileB := folder(t, "b")
			files := map[string]string{"a": fileA, "b": fileB}
			x := begin(a, b)
			read(t, x.Overlay("a"), "f")
			read(t, x.Overlay("b"), "f")
			for _, v := range c.writes {
				write(t, x.Overlay(v), "f", "new")
			}
			p, err := x.Prepare(t.Context())
			must(t, err)
			must(t, os.WriteFile(files[c.changed], []byte("OLD"), 0o644))
			if err := x.Commit(t.Context(), p, store.Commit{}); !errors.Is(err, volume.ErrConflict) || errors.Is(err, ErrPartial) {
				t.Fatalf("commit: %v", err)
			}
			for v, file := range files {
				if v == c.changed {
					holds(t, file, "OLD")
				} else {
					holds(t, file, "old")
				}
			}
		})
	}
}

// failing is a store whose changes cannot be put in place, or not be taken back,
// though Check says nothing.
type failing struct {
	volume.Locker
	publish, undo error
}

func (f failing) Stage(ctx context.Context, c *volume.Change) (volume.Staged, error) {
	s, err := f.Locker.Stage(ctx, c)
	return failingStaged{s, f}, err
}

type failingStaged struct {
	volume.Staged
	failing
}

func (f failingStaged) Publish(ctx context.Context) error {
	if f.publish != nil {
		return f.publish
	}
	return f.Staged.Publish(ctx)
}

func (f failingStaged) Undo() error {
	if f.undo != nil {
		return f.undo
	}
	return f.Staged.Undo()
}

// When a later volume cannot be changed the earlier one is changed back, and
// the error is that of the later one. Only when that fails is the commit partial,
// and nothing may look like a conflict then: the call would be run again.
func TestPartial(t *testing.T) {
	for name, undo := range map[string]error{"undone": nil, "not undone": errors.New("injected"), "torn": volume.ErrTorn} {
		t.Run(name, func(t *testing.T) {
			a, fileA := folder(t, "a")
			b, fileB := folder(t, "b")
			a.Store = failing{a.Store.(volume.Locker), nil, undo}
			b.Store = failing{b.Store.(volume.Locker), volume.ErrConflict, nil}
			x := begin(a, b)
			write(t, x.Overlay("a"), "f", "new")
			write(t, x.Overlay("b"), "f", "new")
			p, err := x.Prepare(t.Context())
			must(t, err)
			err = x.Commit(t.Context(), p, store.Commit{})
			if errors.Is(err, ErrPartial) != (undo != nil) || errors.Is(err, volume.ErrConflict) != (undo == nil) ||
				errors.Is(err, volume.ErrTorn) != errors.Is(undo, volume.ErrTorn) {
				t.Errorf("commit: %v", err)
			}
			if undo == nil {
				holds(t, fileA, "old")
			} else {
				holds(t, fileA, "new")
			}
			holds(t, fileB, "old")
			left, err := os.ReadDir(filepath.Dir(fileA))
			if err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// Stores that are no Lockers are changed last, and cannot be changed back.
func TestPartialUnlocked(t *testing.T) {
	a, fileA := folder(t, "a")
	b, fileB := folder(t, "b")
	c, fileC := folder(t, "c")
	b.Store = struct{ volume.Store }{b.Store}
	x := begin(a, b, c)
	for _, name := range []string{"a", "b", "c"} {
		write(t, x.Overlay(name), "f", "new")
	}
	p, err := x.Prepare(t.Context())
	must(t, err)
	must(t, os.WriteFile(fileB, []byte("OLD"), 0o644))
	if err := x.Commit(t.Context(), p, store.Commit{}); !errors.Is(err, volume.ErrConflict) || errors.Is(err, ErrPartial) {
		t.Errorf("commit: %v", err)
	}
	holds(t, fileA, "old")
	holds(t, fileC, "old")

	c.Store = struct{ volume.Store }{c.Store}
	x = begin(a, b, c)
	for _, name := range []string{"a", "b", "c"} {
		write(t, x.Overlay(name), "f", "new")
	}
	p, err = x.Prepare(t.Context())
	must(t, err)
	must(t, os.WriteFile(fileC, []byte("OLD"), 0o644))
	if err := x.Commit(t.Context(), p, store.Commit{}); errors.Is(err, volume.ErrConflict) || !errors.Is(err, ErrPartial) {
		t.Errorf("commit: %v", err)
	}
	holds(t, fileA, "old")
	holds(t, fileB, "new")
}

// What is left between two states says so, whatever else its error matches,
// and nobody runs the call again.
func TestTorn(t *testing.T) {
	cause := fmt.Errorf("%w: %w", volume.ErrTorn, volume.ErrConflict)
	for _, name := range []string{"a", "b"} {
		a, fileA := folder(t, "a")
		b, _ := folder(t, "b")
		vols := map[string]*Volume{"a": &a, "b": &b}
		vols[name].Store = failing{vols[name].Store.(volume.Locker), cause, nil}
		x := begin(a, b)
		write(t, x.Overlay("a"), "f", "new")
		write(t, x.Overlay("b"), "f", "new")
		p, err := x.Prepare(t.Context())
		must(t, err)
		err = x.Commit(t.Context(), p, store.Commit{})
		if !errors.Is(err, volume.ErrTorn) || errors.Is(err, volume.ErrConflict) || errors.Is(err, ErrPartial) {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, fileA, "old")
	}
}

// A store that cannot be locked is still checked before anything is changed
// when it was only read.
func TestUnlocked(t *testing.T) {
	a, fileA := folder(t, "a")
	b, fileB := folder(t, "b")
	a.Store = struct{ volume.Store }{a.Store}
	b.Store = struct{ volume.Store }{b.Store}
	x := begin(a, b)
	write(t, x.Overlay("a"), "f", "new")
	read(t, x.Overlay("b"), "f")
	p, err := x.Prepare(t.Context())
	must(t, err)
	must(t, os.WriteFile(fileB, []byte("OLD"), 0o644))
	if err := x.Commit(t.Context(), p, store.Commit{}); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("commit: %v", err)
	}
	holds(t, fileA, "old")
}

func TestStates(t *testing.T) {
	a, file := folder(t, "a")
	is := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	x := begin(a)
	is("commit of nothing", x.Commit(t.Context(), nil, store.Commit{}), ErrNotPrepared)
	is("commit for others", x.Commit(t.Context(), &Prepared{Changes: map[string]*volume.Change{"b": {}}}, store.Commit{}), ErrVolumes)
	read(t, x.Overlay("a"), "f")
	must(t, x.Overlay("a").Open(x.Overlay("a").Root()))
	p, err := x.Prepare(t.Context())
	must(t, err)
	must(t, x.Rollback())
	must(t, x.Rollback())
	is("commit after rollback", x.Commit(t.Context(), p, store.Commit{}), ErrDone)
	_, err = x.Prepare(t.Context())
	is("prepare after rollback", err, ErrDone)
	_, err = x.Overlay("a").Walk(x.Overlay("a").Root(), "f", true)
	is("use after rollback", err, capabilities.EBADF)

	x = begin(a)
	write(t, x.Overlay("a"), "f", "new")
	p, err = x.Prepare(t.Context())
	must(t, err)
	must(t, x.Commit(t.Context(), p, store.Commit{}))
	is("second commit", x.Commit(t.Context(), p, store.Commit{}), ErrDone)
	must(t, x.Rollback())
	holds(t, file, "new")

	_, err = begin(a, a).Prepare(t.Context())
	is("same name twice", err, ErrVolumes)
	if begin(a).Overlay("b") != nil {
		t.Error("an overlay for a volume that is not there")
	}
}

// Scratch is no environment: it has no effects and is never committed.
func TestScratch(t *testing.T) {
	a, _ := folder(t, "a")
	x := begin(a, Volume{Name: "tmp", Path: "/tmp"})
	write(t, x.Overlay("tmp"), "f", "scratch")
	p, err := x.Prepare(t.Context())
	must(t, err)
	if !p.Empty() || len(p.Effects) != 0 || len(p.Changes) != 0 {
		t.Errorf("prepared %+v", p)
	}
	must(t, x.Commit(t.Context(), p, store.Commit{}))
}

// Cancelling the caller's context after prepare does not stop a commit.
func TestCommitCannotBeCancelled(t *testing.T) {
	a, file := folder(t, "a")
	x := begin(a)
	write(t, x.Overlay("a"), "f", "new")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := x.Prepare(ctx)
	must(t, err)
	cancel()
	must(t, x.Commit(ctx, p, store.Commit{}))
	holds(t, file, "new")
}

func BenchmarkReadWriteCommit(b *testing.B) {
	v, _ := folder(b, "a")
	for i := 0; b.Loop(); i++ {
		x := begin(v)
		read(b, x.Overlay("a"), "f")
		write(b, x.Overlay("a"), "f", strconv.Itoa(i))
		p, err := x.Prepare(b.Context())
		must(b, err)
		must(b, x.Commit(b.Context(), p, store.Commit{}))
	}
}

func BenchmarkReadOnlyCommit(b *testing.B) {
	v, _ := folder(b, "a")
	for b.Loop() {
		x := begin(v)
		read(b, x.Overlay("a"), "f")
		p, err := x.Prepare(b.Context())
		must(b, err)
		must(b, x.Commit(b.Context(), p, store.Commit{}))
	}
}
