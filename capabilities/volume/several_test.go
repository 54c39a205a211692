package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copies returns two volumes that are copies of a template, and their folders.
func copies(t *testing.T, template, top string) (vols []tx.Volume, dirs []string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(top, name)
		must(t, os.CopyFS(dir, os.DirFS(template)))
		h, err := volume.OpenDir(dir)
		must(t, err)
		t.Cleanup(func() { must(t, h.Close()) })
		vols = append(vols, tx.Volume{Name: name, Path: "/" + name, Store: h})
		dirs = append(dirs, dir)
	}
	return vols, dirs
}

// TestSeveralFaults lets each file-system operation fail in turn, of a commit to
// two volumes: both are then as before, or both as after, and no stage is left.
func TestSeveralFaults(t *testing.T) {
	injected := errors.New("injected")
	template, after, scratch := t.TempDir(), t.TempDir(), volume.QuickDir(t)
	volume.Plant(t, template, volume.Lively)
	volume.Plant(t, after, volume.LivelyEnd)
	want := volume.Image(t, after)
	failed := 0
	step := volume.Every(7)
	for k := 1; ; k += step {
		vols, dirs := copies(t, template, filepath.Join(scratch, strconv.Itoa(k)))
		before := volume.Image(t, dirs[0])
		x := tx.Begin(tx.Parts{Volumes: vols}, volume.Options{Budget: &volume.Budget{Bytes: 64 << 20, Files: 1000}})
		for _, v := range vols {
			volume.LivelyCall(t, x.Overlay(v.Name))
		}
		p, err := x.Prepare(t.Context())
		must(t, err)
		n, where := 0, ""
		for _, v := range vols {
			v.Store.(*volume.HostDir).SetFault(func(op, name string) error {
				if n++; n == k {
					where = v.Name + ": " + op + " " + name
					return injected
				}
				return nil
			})
		}
		err = x.Commit(t.Context(), p, store.Commit{})
		if errors.Is(err, tx.ErrPartial) || (err != nil && !errors.Is(err, injected)) {
			t.Errorf("fault %d (%s): %v", k, where, err)
		}
		is := want
		if err != nil {
			is = before
			failed++
		}
		for _, dir := range dirs {
			if got := volume.Image(t, dir); !volume.EqualImage(got, is) {
				t.Errorf("fault %d (%s), %v: half done", k, where, err)
				volume.SameImage(t, got, is)
			}
		}
		if n < k {
			break
		}
	}
	if failed*step < 200 {
		t.Errorf("%d faults failed the commit: the test does not reach what it should", failed)
	}
}

// What was published and taken back can be tried again.
func TestSeveralRetry(t *testing.T) {
	template := t.TempDir()
	volume.Plant(t, template, volume.Lively)
	vols, dirs := copies(t, template, t.TempDir())
	begin := func() *tx.Tx {
		return tx.Begin(tx.Parts{Volumes: vols}, volume.Options{Budget: &volume.Budget{Bytes: 64 << 20, Files: 1000}})
	}
	x := begin()
	for _, v := range vols {
		volume.LivelyCall(t, x.Overlay(v.Name))
	}
	p, err := x.Prepare(t.Context())
	must(t, err)
	injected, b := errors.New("injected"), vols[1].Store.(*volume.HostDir)
	b.SetFault(func(op, name string) error {
		if op == "sync" && name == "." {
			return injected
		}
		return nil
	})
	if err := x.Commit(t.Context(), p, store.Commit{}); !errors.Is(err, injected) {
		t.Fatalf("commit: %v", err)
	}
	b.SetFault(nil)
	must(t, begin().Commit(t.Context(), p, store.Commit{}))
	after := t.TempDir()
	volume.Plant(t, after, volume.LivelyEnd)
	for _, dir := range dirs {
		volume.SameImage(t, volume.Image(t, dir), volume.Image(t, after))
	}
}
