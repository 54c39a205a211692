package volume_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// TestSavedFaults lets each file-system operation fail in turn, of a commit to two
// volumes and a store. If the store has it, both are as after once they are used
// again; if not, both are as before. No stage is left but one that is known to be
// done, which the next process deletes.
func TestSavedFaults(t *testing.T) {
	injected := errors.New("injected")
	template, after, scratch := t.TempDir(), t.TempDir(), volume.QuickDir(t)
	volume.Plant(t, template, volume.Lively)
	volume.Plant(t, after, volume.LivelyEnd)
	want := volume.Image(t, after)
	refused, pending := 0, 0
	step := 3 * volume.Every(5)
	for k := 1; ; k += step {
		s := memstore.New()
		intents, err := tx.NewIntents(t.Context(), s)
		must(t, err)
		var vols []tx.Volume
		var dirs []string
		for _, name := range []string{"a", "b"} {
			dir := filepath.Join(scratch, strconv.Itoa(k), name)
			must(t, os.CopyFS(dir, os.DirFS(template)))
			h, err := volume.OpenJournaled(dir, intents.Of(dir))
			must(t, err)
			t.Cleanup(func() { must(t, h.Close()) })
			vols, dirs = append(vols, tx.Volume{Name: name, Path: "/" + name, Store: h}), append(dirs, dir)
		}
		before := volume.Image(t, dirs[0])
		x := tx.Begin(tx.Parts{Volumes: vols, Store: s, Intents: intents}, volume.Options{Budget: &volume.Budget{Bytes: 64 << 20, Files: 1000}})
		for _, v := range vols {
			volume.LivelyCall(t, x.Overlay(v.Name))
		}
		p, err := x.Prepare(t.Context())
		must(t, err)
		n, where := 0, ""
		fault := func(name string) func(op, path string) error {
			return func(op, path string) error {
				if n++; n == k {
					where = name + ": " + op + " " + path
					return injected
				}
				return nil
			}
		}
		for _, v := range vols {
			v.Store.(*volume.HostDir).SetFault(fault(v.Name))
		}
		key := store.Key{Space: store.Space{Principal: "p", Package: "q", Area: "kv"}, Name: "k"}
		err = x.Commit(t.Context(), p, store.Commit{ID: "1", Time: time.Now(), Writes: []store.Write{{Key: key, Value: []byte("x")}}})
		for _, v := range vols {
			v.Store.(*volume.HostDir).SetFault(nil)
		}
		if n < k {
			must(t, err)
			break
		}
		now, serr := s.Snapshot(t.Context())
		must(t, serr)
		kept, serr := now.Get(t.Context(), key)
		must(t, serr)
		saved := kept[0].Version != 0
		if told := err == nil || errors.Is(err, tx.ErrPending); told != saved {
			t.Errorf("%s: saved %v: %v", where, saved, err)
		}
		switch {
		case !saved:
			refused++
		case err != nil:
			pending++
		}
		for i, v := range vols {
			must(t, v.Store.(*volume.HostDir).Settle(t.Context()))
			is := volume.Image(t, dirs[i])
			maps.DeleteFunc(is, func(path, _ string) bool { return strings.HasPrefix(path, ".sandboxd-done-") })
			if saved {
				volume.SameImage(t, is, want)
			} else {
				volume.SameImage(t, is, before)
			}
		}
	}
	if refused == 0 || pending == 0 {
		t.Errorf("%d refused, %d pending: the test does not reach what it should", refused, pending)
	}
}
