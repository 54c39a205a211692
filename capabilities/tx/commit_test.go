package tx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// take removes the file of one volume after it has seen that of the other: at
// least one stays.
func take(t testing.TB, from, seen string, vols ...Volume) (*Tx, *Prepared) {
	t.Helper()
	x := begin(vols...)
	read(t, x.Overlay(seen), "f")
	o := x.Overlay(from)
	p, err := o.Walk(o.Root(), "f", false)
	must(t, err)
	must(t, o.Remove(p))
	prepared, err := x.Prepare(t.Context())
	must(t, err)
	return x, prepared
}

// pausing is a store that does something when its guards were checked.
type pausing struct {
	volume.Locker
	checked func()
}

func (p pausing) Stage(ctx context.Context, c *volume.Change) (volume.Staged, error) {
	s, err := p.Locker.Stage(ctx, c)
	return pausingStaged{s, p.checked}, err
}

type pausingStaged struct {
	volume.Staged
	checked func()
}

func (p pausingStaged) Check(ctx context.Context) error {
	defer p.checked()
	return p.Staged.Check(ctx)
}

// Two calls that each take away what the other has seen do not both commit,
// though neither writes where the other does.
func TestWriteSkew(t *testing.T) {
	a, fileA := folder(t, "a")
	b, fileB := folder(t, "b")
	second, p2 := take(t, "a", "b", a, b)
	done := make(chan error, 1)
	paused := a
	paused.Store = pausing{a.Store.(volume.Locker), func() {
		go func() { done <- second.Commit(context.Background(), p2, store.Commit{}) }()
		select {
		case err := <-done:
			done <- err
			t.Errorf("committed in the middle of another commit: %v", err)
		case <-time.After(30 * time.Millisecond):
		}
	}}
	first, p1 := take(t, "b", "a", paused, b)
	must(t, first.Commit(t.Context(), p1, store.Commit{}))
	if err := <-done; !errors.Is(err, volume.ErrConflict) {
		t.Errorf("second: %v", err)
	}
	holds(t, fileA, "old")
	if _, err := os.Stat(fileB); err == nil {
		t.Error("nothing was removed")
	}
}

// The same without a pause, many times, from two processes as far as the
// volumes can tell, and whatever the order in which they are named.
func TestWriteSkewRaces(t *testing.T) {
	for range 30 {
		a, fileA := folder(t, "a")
		b, fileB := folder(t, "b")
		first, p1 := take(t, "b", "a", a, b)
		second, p2 := take(t, "y", "x", again(t, "x", fileB), again(t, "y", fileA))
		var wg sync.WaitGroup
		wg.Go(func() { _ = first.Commit(context.Background(), p1, store.Commit{}) })
		wg.Go(func() { _ = second.Commit(context.Background(), p2, store.Commit{}) })
		wg.Wait()
		_, errA := os.Stat(fileA)
		_, errB := os.Stat(fileB)
		if errA != nil && errB != nil {
			t.Fatal("both committed on what the other took away")
		}
	}
}

// again opens the folder of a file once more.
func again(t *testing.T, name, file string) Volume {
	t.Helper()
	h, err := volume.OpenDir(filepath.Dir(file))
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return Volume{Name: name, Path: "/" + name, Store: h}
}

// A folder takes part in a transaction once, and none that is in it.
func TestOverlappingVolumes(t *testing.T) {
	a, fileA := folder(t, "a")
	same := a
	same.Name = "b"
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(fileA), "d", "e"), 0o755))
	for name, other := range map[string]Volume{
		"same store": same, "same folder": again(t, "b", fileA),
		"in it": again(t, "b", filepath.Join(filepath.Dir(fileA), "d", "e", "x")),
		"above": again(t, "b", filepath.Dir(fileA)),
	} {
		for _, vols := range [][]Volume{{a, other}, {other, a}} {
			x := begin(vols...)
			if !errors.Is(x.Err(), ErrVolumes) {
				t.Errorf("%s: %v", name, x.Err())
			}
			if _, err := x.Prepare(t.Context()); !errors.Is(err, ErrVolumes) {
				t.Errorf("%s: prepare: %v", name, err)
			}
			if err := x.Commit(t.Context(), &Prepared{}, store.Commit{}); !errors.Is(err, ErrVolumes) {
				t.Errorf("%s: commit: %v", name, err)
			}
			must(t, x.Rollback())
		}
	}
	b, _ := folder(t, "b")
	must(t, begin(a, b).Err())
}

// The budget is shared by the volumes, also for what only the end shows.
func TestBudgetShared(t *testing.T) {
	var vols []Volume
	for _, name := range []string{"a", "b"} {
		v, file := folder(t, name)
		must(t, os.MkdirAll(filepath.Join(filepath.Dir(file), "d", "sub"), 0o755))
		vols = append(vols, v)
	}
	for files, want := range map[int64]bool{3: false, 4: true} {
		x := Begin(Parts{Volumes: vols}, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: files}})
		for _, name := range []string{"a", "b"} {
			o := x.Overlay(name)
			from, err := o.Walk(o.Root(), "d", false)
			must(t, err)
			to, err := o.Walk(o.Root(), "n", false)
			must(t, err)
			must(t, o.Rename(from, to))
		}
		for range 2 {
			_, err := x.Prepare(t.Context())
			if l, limited := errors.AsType[*volume.LimitError](err); (err == nil) != want || (limited && l.Resource != "files") {
				t.Errorf("%d files: %v", files, err)
			}
		}
		must(t, x.Rollback())
	}
}
