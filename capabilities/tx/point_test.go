package tx

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// leaves does something of every sort: in two managed volumes, two folders, keys
// and the outbox.
func (r *run) leaves(t testing.TB, data string) {
	t.Helper()
	for _, vol := range []string{"m", "n", "f", "g"} {
		write(t, r.Overlay(vol), "a", data)
	}
	must(t, r.keys.Put(t.Context(), "k", []byte(data)))
	r.send(t, data)
}

// after is what leaves leaves, but for messages.
func after(data string) map[string]string {
	return map[string]string{"m a": data, "n a": data, "f a": data, "g a": data, "kv k": data}
}

// withRecord is a commit with something of the host's.
func withRecord(id string) store.Commit {
	c := named(id)
	c.Writes = []store.Write{{
		Key:   store.Key{Space: store.Space{Principal: someone, Package: notes, Area: store.AreaIdempotency}, Name: id},
		Value: []byte("result"),
	}}
	c.Records = []store.Record{{Time: c.Time, Data: []byte(`{"call":"` + id + `"}`)}}
	return c
}

// isState compares all that a call finds, but for messages and what the host keeps.
func isState(t testing.TB, p *site, want map[string]string) {
	t.Helper()
	got := p.state(t)
	maps.DeleteFunc(got, func(k, _ string) bool { return k[:2] == "ou" || k[:2] == "id" })
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// clean fails where a folder or the store has something left of commits. What was
// given up may be remembered.
func (p *site) clean(t testing.TB) {
	t.Helper()
	for _, dir := range p.dirs {
		if left := stages(t, dir); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

// All that a call leaves is one commit of the store, with all that comes with it;
// the next one deletes what the folders needed.
func TestOneCommit(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		r := p.call(t)
		r.leaves(t, "1")
		must(t, r.commit(t.Context(), withRecord("first")))
		isState(t, p, after("1"))
		got := p.state(t)
		if got["idempotency first"] != "result" || got["outbox example.org\x001"] == "" {
			t.Errorf("left %v", got)
		}
		if n := p.store.counted(); n != 1 {
			t.Errorf("%d commits", n)
		}
		log, err := s.Records(t.Context(), "", 10)
		if err != nil || len(log) != 1 {
			t.Errorf("records %v, %v", log, err)
		}
		if is := pending(t, s); len(is) != 2 || is[p.dirs[0]+"\x00first"] == "" || is[p.dirs[1]+"\x00first"] == "" {
			t.Errorf("intents %v", is)
		}
		p.clean(t)
		r = p.call(t)
		must(t, r.keys.Put(t.Context(), "k", []byte("2")))
		must(t, r.commit(t.Context(), named("second")))
		if is := pending(t, s); len(is) != 0 {
			t.Errorf("intents %v", is)
		}
	})
}

// What another call changes of what one rests on, wherever that is, keeps it from
// leaving anything anywhere.
func TestConflictInEach(t *testing.T) {
	changes := map[string]func(t testing.TB, r *run){
		"file":         func(t testing.TB, r *run) { write(t, r.Overlay("n"), "a", "x") },
		"folder":       func(t testing.TB, r *run) { write(t, r.Overlay("g"), "a", "x") },
		"name":         func(t testing.TB, r *run) { write(t, r.Overlay("m"), "b", "x") },
		"folder name":  func(t testing.TB, r *run) { write(t, r.Overlay("f"), "b", "x") },
		"key":          func(t testing.TB, r *run) { must(t, r.keys.Put(t.Context(), "k", []byte("x"))) },
		"key in range": func(t testing.TB, r *run) { must(t, r.keys.Put(t.Context(), "s5", []byte("x"))) },
		"message":      func(t testing.TB, r *run) { r.send(t, "2") },
		"call itself": func(t testing.TB, r *run) {
			must(t, r.commit(t.Context(), withRecord("second")))
		},
	}
	onEach(t, func(t *testing.T, s store.Store) {
		for name, change := range changes {
			t.Run(name, func(t *testing.T) {
				p := siteOf(t, s, 2)
				first := p.call(t)
				first.leaves(t, "1"+name)
				must(t, first.commit(t.Context(), withRecord("first "+name)))
				second := p.call(t)
				for _, vol := range []string{"m", "f"} {
					_, err := second.Overlay(vol).List(second.Overlay(vol).Root())
					must(t, err)
				}
				_, err := second.keys.Scan(t.Context(), "s", "t", 10)
				must(t, err)
				second.leaves(t, "2")
				with := withRecord("second")
				with.ID = "again " + name // as another process does the same
				with.Guards = append(with.Guards, store.Guard{Key: with.Writes[0].Key})

				between := siteAt(t, s, p.dirs...).call(t)
				change(t, between)
				if name != "call itself" {
					must(t, between.commit(t.Context(), named("between "+name)))
				}
				before := p.state(t)
				err = second.commit(t.Context(), with)
				if !errors.Is(err, volume.ErrConflict) && !errors.Is(err, store.ErrConflict) {
					t.Errorf("commit: %v", err)
				}
				if is := p.state(t); !maps.Equal(is, before) {
					t.Errorf("left %v, had %v", is, before)
				}
				p.clean(t)
			})
		}
	})
}

// What the store refuses for certain leaves nothing, and no stage.
func TestStoreRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		for _, refused := range []error{errDisk, store.ErrConflict, store.ErrTooLarge} {
			p := siteOf(t, s, 2)
			p.store.wrong(func(context.Context, *store.Commit) (store.Version, error) { return 0, refused })
			r := p.call(t)
			r.leaves(t, "1")
			if err := r.commit(t.Context(), withRecord("first")); !errors.Is(err, refused) || errors.Is(err, ErrPending) {
				t.Errorf("commit: %v", err)
			}
			if n := p.store.counted(); n != 1 {
				t.Errorf("%d commits", n)
			}
			p.clean(t)
			p.store.wrong(nil)
			isState(t, p, map[string]string{})
			if is := pending(t, s); len(is) != 0 {
				t.Errorf("intents %v", is)
			}
		}
	})
}

// Where the answer of the store is lost it is asked again: the call is done once,
// whether it was the first time or not.
func TestAnswerLost(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		for name, done := range map[string]bool{"done": true, "not done": false} {
			p := siteOf(t, s, 2)
			lost := 2
			p.store.wrong(func(ctx context.Context, c *store.Commit) (store.Version, error) {
				if lost--; lost < 0 {
					return s.Commit(ctx, c)
				}
				if done {
					if _, err := s.Commit(ctx, c); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				return 0, store.ErrUnknown
			})
			r := p.call(t)
			want := after(name)
			r.leaves(t, name)
			must(t, r.commit(t.Context(), withRecord(name)))
			isState(t, p, want)
			p.clean(t)
		}
	})
}

// unknown commits a call of which nobody can tell whether it is saved, after what
// happened to it. It returns the commit.
func (p *site) unknown(t testing.TB, data string, happens func(c *store.Commit)) *store.Commit {
	t.Helper()
	var last *store.Commit
	p.store.wrong(func(_ context.Context, c *store.Commit) (store.Version, error) {
		if last == nil {
			copied := *c
			last = &copied
			happens(last)
		}
		return 0, store.ErrUnknown
	})
	r := p.call(t)
	r.leaves(t, data)
	err := r.commit(t.Context(), withRecord(data))
	if !errors.Is(err, store.ErrUnknown) || errors.Is(err, ErrPending) {
		t.Errorf("commit: %v", err)
	}
	p.store.wrong(nil)
	return last
}

// What nobody can tell of is found out before the folder is used again: what was
// saved is put in place, what was not is given up for good, so that it cannot come
// late.
func TestUnknown(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		p.unknown(t, "1", func(c *store.Commit) {
			_, err := s.Commit(t.Context(), c)
			must(t, err)
		})
		isState(t, p, after("1"))
		p.clean(t)

		late := p.unknown(t, "2", func(*store.Commit) {})
		isState(t, p, after("1"))
		if _, err := s.Commit(t.Context(), late); !errors.Is(err, store.ErrConflict) {
			t.Errorf("late commit: %v", err)
		}
		isState(t, p, after("1"))
		r := p.call(t)
		r.leaves(t, "3")
		must(t, r.commit(t.Context(), withRecord("3")))
		isState(t, p, after("3"))
		p.clean(t)
	})
}

// As long as that cannot be found out nobody uses the folder.
func TestUnknownStays(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		p.unknown(t, "1", func(*store.Commit) {})
		p.store.wrong(func(context.Context, *store.Commit) (store.Version, error) { return 0, errDisk })
		if _, err := p.begin(t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("used: %v", err)
		}
		if len(stages(t, p.dirs[0])) != 1 {
			t.Error("the stage is gone")
		}
		p.store.wrong(nil)
		isState(t, p, map[string]string{})
	})
}

// stuck is a folder that cannot be staged, or not be changed.
type stuck struct {
	*volume.HostDir
	stage, publish error
}

func (s stuck) Stage(ctx context.Context, c *volume.Change) (volume.Staged, error) {
	if s.stage != nil && !c.Empty() {
		return nil, s.stage
	}
	staged, err := s.HostDir.Stage(ctx, c)
	if err != nil {
		return nil, err
	}
	return stuckStaged{staged.(volume.Intending), s.publish}, nil
}

type stuckStaged struct {
	volume.Intending
	publish error
}

func (s stuckStaged) Publish(ctx context.Context) error {
	if s.publish != nil {
		return s.publish
	}
	return s.Intending.Publish(ctx)
}

// A folder without room keeps the call from being saved.
func TestNoRoom(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		for i := range 2 {
			p := siteOf(t, s, 2)
			p.folders[i].Store = stuck{p.folders[i].Store.(*volume.HostDir), errDisk, nil}
			r := p.call(t)
			r.leaves(t, "1")
			if err := r.commit(t.Context(), withRecord("first")); !errors.Is(err, errDisk) || errors.Is(err, ErrPending) {
				t.Errorf("commit: %v", err)
			}
			if n := p.store.counted(); n != 0 {
				t.Errorf("%d commits", n)
			}
			p.clean(t)
			isState(t, p, map[string]string{})
		}
	})
}

// What cannot be put in place after the commit is saved all the same: whoever uses
// the folder next does it, this process or another, several at a time.
func TestPending(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		for what, broken := range map[string][]int{"first": {0}, "second": {1}, "both": {0, 1}} {
			t.Run(what, func(t *testing.T) {
				p := siteOf(t, s, 2)
				for _, dir := range p.dirs {
					must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644))
				}
				reader := siteAt(t, s, p.dirs...)
				early := reader.call(t)
				for _, vol := range []string{"f", "g"} {
					if data, _ := early.cat(t, vol, "a"); data != "old" {
						t.Errorf("read %q", data)
					}
				}
				for _, i := range broken {
					p.folders[i].Store = stuck{p.folders[i].Store.(*volume.HostDir), nil, errDisk}
				}
				r := p.call(t)
				r.leaves(t, what)
				if err := r.commit(t.Context(), withRecord(what)); !errors.Is(err, ErrPending) || !errors.Is(err, errDisk) {
					t.Fatalf("commit: %v", err)
				}
				for i, dir := range p.dirs {
					want := what
					if len(broken) == 2 || broken[0] == i {
						want = "old"
					}
					holds(t, filepath.Join(dir, "a"), want)
				}
				if err := early.commit(t.Context(), named("early "+what)); !errors.Is(err, volume.ErrConflict) {
					t.Errorf("what was read before: %v", err)
				}
				var wg sync.WaitGroup
				for range 3 {
					other := siteAt(t, s, p.dirs...)
					wg.Go(func() {
						for _, v := range other.folders {
							if err := v.Store.(*volume.HostDir).Settle(context.Background()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				isState(t, reader, after(what))
				reader.clean(t)
				must(t, reader.folders[0].Store.(*volume.HostDir).Settle(t.Context()))
				isState(t, p, after(what))
			})
		}
	})
}

// A folder that keeps no intents is not changed with a store, nor one that is no
// Locker: nobody would finish it after a crash.
func TestNoIntents(t *testing.T) {
	plain, file := folder(t, "f")
	unlocked := plain
	unlocked.Store = struct{ volume.Store }{plain.Store}
	for name, v := range map[string]Volume{"plain": plain, "unlocked": unlocked} {
		for _, intents := range []bool{true, false} {
			p := siteOf(t, stores["memory"](t), 1)
			if !intents {
				p.intents = nil
			}
			p.folders = []Volume{v}
			r := p.call(t)
			write(t, r.Overlay("f"), "f", "new")
			if err := r.commit(t.Context(), named("first")); !errors.Is(err, ErrVolumes) {
				t.Errorf("%s: %v", name, err)
			}
			holds(t, file, "old")
			if n := p.store.counted(); n != 0 {
				t.Errorf("%s: %d commits", name, n)
			}
		}
	}
}
