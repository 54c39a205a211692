package tx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func ownerIn(t testing.TB, s store.Store, dir string) string {
	t.Helper()
	i, err := NewIntents(t.Context(), s)
	must(t, err)
	o, ok := i.Of(dir).(volume.Owner)
	if !ok {
		t.Fatal("it has no owner")
	}
	return o.Owner()
}

// A store has one name for good in each folder, also when several processes give
// it to it at once; others have others.
func TestOwner(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		names := make([]string, 8)
		var wg sync.WaitGroup
		for n := range names {
			wg.Go(func() { names[n] = ownerIn(t, s, "/a") })
		}
		wg.Wait()
		for _, name := range append(names, ownerIn(t, s, "/a")) {
			if name != names[0] || len(name) < 20 {
				t.Errorf("%q and %q", name, names[0])
			}
		}
		if ownerIn(t, s, "/b") == names[0] || ownerIn(t, stores["memory"](t), "/a") == names[0] {
			t.Error("shared by folders, or by stores")
		}
		broken := &watched{Store: stores["memory"](t), commit: func(context.Context, *store.Commit) (store.Version, error) { return 0, errDisk }}
		if _, err := NewIntents(t.Context(), broken); !errors.Is(err, errDisk) {
			t.Errorf("without a name: %v", err)
		}
	})
}

// A stage that a killed process of the same store left, and did not commit, is
// deleted; that of another store, or of a folder that was elsewhere then, is not.
func TestLeftStages(t *testing.T) {
	s := stores["memory"](t)
	p := siteOf(t, s, 1)
	stage := func(owner string) string {
		sum := sha256.Sum256([]byte(owner))
		dir := filepath.Join(p.dirs[0], ".sandboxd-tx-"+hex.EncodeToString(sum[:8])+"-AAAAAAAAAAAAAAAAAAAAAAAAAA")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "n-1"), []byte("new"), 0o600))
		return dir
	}
	stage(ownerIn(t, s, p.dirs[0]))
	moved, other := stage(ownerIn(t, s, "/before")), stage(ownerIn(t, stores["memory"](t), p.dirs[0]))
	r := p.call(t)
	write(t, r.Overlay("f"), "a", "x")
	must(t, r.commit(t.Context(), named("1")))
	left, want := stages(t, p.dirs[0]), []string{moved, other}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

// All that is pending is found, however much that is, but what is done; a folder's
// own alone.
func TestPendingIntents(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		i, err := NewIntents(t.Context(), s)
		must(t, err)
		const many = 2*intentPage + 7
		c := named("many")
		for n := range many {
			c.Writes = append(c.Writes, store.Write{Key: intentKey("/a", fmt.Sprintf("%04d", n)), Value: []byte("x")})
		}
		c.Writes = append(c.Writes,
			store.Write{Key: intentKey("/a", "done"), Value: []byte("x")},
			store.Write{Key: intentKey("/a/b", "1"), Value: []byte("x")}, store.Write{Key: intentKey("/", "1"), Value: []byte("x")})
		_, err = s.Commit(t.Context(), &c)
		must(t, err)
		must(t, i.Of("/a").Done(t.Context(), "done"))
		list, err := i.Of("/a").Pending(t.Context())
		must(t, err)
		if len(list) != many || list[0].ID != "0000" || string(list[0].Data) != "x" {
			t.Errorf("%d pending", len(list))
		}
		if list, err := i.Of("/c").Pending(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("of another: %v, %v", list, err)
		}
	})
}

// Intents that are done are deleted by later commits, some at a time; who cannot
// commit leaves them to the next one.
func TestDoneAreDeleted(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 1)
		c := named("many")
		for n := range maxOld + 3 {
			id := fmt.Sprint(n)
			c.Writes = append(c.Writes, store.Write{Key: intentKey("/a", id), Value: []byte("x")})
			must(t, p.intents.Of("/a").Done(t.Context(), id))
		}
		_, err := s.Commit(t.Context(), &c)
		must(t, err)
		for _, left := range []int{maxOld + 3, 3, 0, 0} {
			if n := len(pending(t, s)); n != left {
				t.Errorf("%d are kept, want %d", n, left)
			}
			for _, refuse := range []bool{true, false} {
				if refuse {
					p.store.wrong(func(context.Context, *store.Commit) (store.Version, error) { return 0, errDisk })
				}
				r := p.call(t)
				_, err := r.keys.Increment(t.Context(), "n", 1)
				must(t, err)
				if err := r.commit(t.Context(), named(fmt.Sprint("commit ", left, p.store.counted()))); errors.Is(err, errDisk) != refuse {
					t.Error(err)
				}
				p.store.wrong(nil)
			}
		}
	})
}

// A commit of an ID that was done is not done again, in no part, whether its intent
// is still kept or not: that of another transaction is nothing of this one's.
func TestSameCommitAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 1)
		r := p.call(t)
		write(t, r.Overlay("f"), "a", "x")
		must(t, r.commit(t.Context(), named("1")))
		for range 2 {
			r = p.call(t)
			write(t, r.Overlay("f"), "b", "x")
			must(t, r.keys.Put(t.Context(), "k", []byte("x")))
			must(t, r.commit(t.Context(), named("1")))
			isState(t, p, map[string]string{"f a": "x"})
			p.clean(t)
			r = p.call(t)
			must(t, r.keys.Put(t.Context(), "l", []byte("x")))
			must(t, r.commit(t.Context(), named("2")))
			r = p.call(t)
			must(t, r.keys.Delete(t.Context(), "l"))
			must(t, r.commit(t.Context(), named("3"+fmt.Sprint(p.store.counted()))))
		}
	})
}
