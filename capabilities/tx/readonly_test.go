package tx

import (
	"errors"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// reads looks at something of every sort.
func (r *run) reads(t testing.TB, vols ...string) {
	t.Helper()
	for _, vol := range vols {
		r.cat(t, vol, "a")
		_, err := r.Overlay(vol).List(r.Overlay(vol).Root())
		must(t, err)
	}
	_, _, err := r.keys.Get(t.Context(), "k")
	must(t, err)
	_, err = r.keys.Scan(t.Context(), "a", "z", 10)
	must(t, err)
}

// A call that only reads costs no commit, whatever it reads of: also one that does
// what is there already.
func TestReadOnlyCostsNoCommit(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		p := siteOf(t, s, 2)
		r := p.call(t)
		r.leaves(t, "1")
		must(t, r.commit(t.Context(), named("first")))
		before := p.store.counted()
		for _, vols := range [][]string{nil, {"m", "n"}, {"f"}, {"m", "n", "f", "g"}} {
			r = p.call(t)
			r.reads(t, vols...)
			must(t, r.commit(t.Context(), named("second")))
		}
		r = p.call(t)
		r.reads(t, "m", "f")
		must(t, r.keys.Put(t.Context(), "k", []byte("1")))
		write(t, r.Overlay("m"), "x", "x")
		o := r.Overlay("m")
		x, err := o.Walk(o.Root(), "x", false)
		must(t, err)
		must(t, o.Remove(x))
		must(t, r.commit(t.Context(), named("third")))
		if n := p.store.counted() - before; n != 0 {
			t.Errorf("%d commits", n)
		}
		p.clean(t)
		isState(t, p, after("1"))
	})
}

// What a call read of the store alone was so at one moment, whatever came after;
// of folders and the store it has to be so at the end.
func TestReadOnlyIsChecked(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		n := 0
		for name, c := range map[string]struct {
			reads  []string
			change func(r *run)
			want   error
		}{
			"store, store changed":       {[]string{"m"}, func(r *run) { write(t, r.Overlay("m"), "a", "2") }, nil},
			"store, keys changed":        {[]string{"m"}, func(r *run) { must(t, r.keys.Put(t.Context(), "k", []byte("2"))) }, nil},
			"both, file changed":         {[]string{"m", "f"}, func(r *run) { write(t, r.Overlay("m"), "a", "2") }, store.ErrConflict},
			"both, name made":            {[]string{"m", "f"}, func(r *run) { write(t, r.Overlay("m"), "b", "2") }, store.ErrConflict},
			"both, key changed":          {[]string{"m", "f"}, func(r *run) { must(t, r.keys.Put(t.Context(), "k", []byte("2"))) }, store.ErrConflict},
			"both, key made":             {[]string{"m", "f"}, func(r *run) { must(t, r.keys.Put(t.Context(), "l", []byte("2"))) }, store.ErrConflict},
			"both, folder changed":       {[]string{"m", "f"}, func(r *run) { write(t, r.Overlay("f"), "a", "2") }, volume.ErrConflict},
			"both, another file changed": {[]string{"m", "f"}, func(r *run) { write(t, r.Overlay("n"), "a", "2") }, nil},
			"both, another folder":       {[]string{"m", "f"}, func(r *run) { write(t, r.Overlay("g"), "a", "2") }, nil},
		} {
			n++
			id := string(rune('a' + n))
			p := siteOf(t, s, 2)
			r := p.call(t)
			r.leaves(t, id)
			must(t, r.commit(t.Context(), named("first "+id)))
			reader := p.call(t)
			reader.reads(t, c.reads...)
			r = siteAt(t, s, p.dirs...).call(t)
			c.change(r)
			must(t, r.commit(t.Context(), named("second "+id)))
			before := p.store.counted()
			if err := reader.commit(t.Context(), named("read "+id)); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			if n := p.store.counted() - before; n != 0 {
				t.Errorf("%s: %d commits", name, n)
			}
			r = p.call(t)
			must(t, r.keys.Delete(t.Context(), "l"))
			o := r.Overlay("m")
			if at, err := o.Walk(o.Root(), "b", false); err == nil && at.Node != nil {
				must(t, o.Remove(at))
			}
			must(t, r.commit(t.Context(), named("end "+id)))
		}
	})
}

// A volume that a call did not touch it does not wait for, either.
func TestUntouchedIsNotLocked(t *testing.T) {
	p := siteOf(t, stores["memory"](t), 2)
	other := p.call(t)
	write(t, other.Overlay("g"), "a", "x")
	prepared, err := other.Prepare(t.Context())
	must(t, err)
	held, err := p.folders[1].Store.(volume.Locker).Stage(t.Context(), prepared.Changes["g"])
	must(t, err)
	defer held.Close()
	must(t, held.Lock(t.Context()))
	r := p.call(t)
	write(t, r.Overlay("f"), "a", "x")
	must(t, r.commit(t.Context(), named("1"))) // would fail after 10 seconds
}
