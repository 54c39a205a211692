package tx

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/postgres"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/enough"
	"github.com/sandboxd/sandboxd/internal/pgtest"
)

var postgresBin = flag.String("postgres", "", "folder of the programs initdb and postgres, 14 or later; without it nothing is tested with PostgreSQL")

// step is something that a call does.
type step struct{ What, At, To string }

// places are what steps are about: a volume and a file, or a key.
func places(volumes ...string) []string {
	list := []string{"kv a", "kv b", "kv c"}
	for _, v := range volumes {
		list = append(list, v+" a", v+" b")
	}
	return list
}

// trouble is what happens to a call.
type trouble string

const (
	refused trouble = "refused" // the store could not do it
	lost    trouble = "lost"    // the first answer was, the commit is done
	silent  trouble = "silent"  // the commit is done, and no answer ever comes
	never   trouble = "never"   // neither
	late    trouble = "late"    // the same, but then the commit arrives after all
	stays   trouble = "stays"   // the folder cannot be changed
)

// planned is a call that is to be run.
type planned struct {
	Steps   []step
	Trouble trouble
}

func genPlans(places []string) *rapid.Generator[[][]planned] {
	place := rapid.SampledFrom(places)
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		what := rapid.SampledFrom([]string{"read", "read", "write", "write", "copy", "remove", "list"}).Draw(t, "what")
		return step{what, place.Draw(t, "at"), place.Draw(t, "to")}
	}), 1, 5)
	call := rapid.Custom(func(t *rapid.T) planned {
		return planned{steps.Draw(t, "steps"), rapid.SampledFrom([]trouble{
			"", "", "", "", "", "", refused, lost, silent, never, late, stays,
		}).Draw(t, "trouble")}
	})
	return rapid.SliceOfN(rapid.SliceOfN(call, 1, 4), 4, 4)
}

// world is what steps are done in: the real one, or a model.
type world interface {
	read(at string) (string, bool)
	write(at, data string)
	remove(at string)
	list(of string) string
}

// perform does steps and returns what they saw.
func perform(w world, id string, steps []step) (seen []string) {
	for n, s := range steps {
		switch s.What {
		case "read":
			data, ok := w.read(s.At)
			seen = append(seen, fmt.Sprint(data, ok))
		case "write":
			w.write(s.At, fmt.Sprint(id, ".", n))
		case "copy":
			data, ok := w.read(s.At)
			seen = append(seen, fmt.Sprint(data, ok))
			w.write(s.To, "+"+data[:min(len(data), 20)])
		case "remove":
			_, ok := w.read(s.At)
			if seen = append(seen, fmt.Sprint(ok)); ok {
				w.remove(s.At)
			}
		case "list":
			seen = append(seen, w.list(s.At[:strings.IndexByte(s.At, ' ')]))
		}
	}
	return seen
}

// model is a world in a map.
type model map[string]string

func (m model) read(at string) (string, bool) { data, ok := m[at]; return data, ok }
func (m model) write(at, data string)         { m[at] = data }
func (m model) remove(at string)              { delete(m, at) }

func (m model) list(of string) string {
	var names []string
	for at, data := range m {
		if name, ok := strings.CutPrefix(at, of+" "); ok {
			if of == "kv" {
				name += "=" + data
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// live is the world of a call.
type live struct {
	t testing.TB
	*run
}

func (l live) read(at string) (string, bool) {
	vol, name, _ := strings.Cut(at, " ")
	if vol == "kv" {
		data, ok, err := l.keys.Get(l.t.Context(), name)
		l.noted(err)
		return string(data), ok
	}
	o := l.Overlay(vol)
	p, err := o.Walk(o.Root(), name, true)
	l.noted(err)
	if err != nil || p.Node == nil {
		return "", false
	}
	data := make([]byte, 64)
	n, _ := o.ReadAt(p.Node, data, 0) // its end
	return string(data[:n]), true
}

func (l live) write(at, data string) {
	vol, name, _ := strings.Cut(at, " ")
	if vol == "kv" {
		l.noted(l.keys.Put(l.t.Context(), name, []byte(data)))
		return
	}
	o := l.Overlay(vol)
	p, err := o.Walk(o.Root(), name, true)
	l.noted(err)
	n := p.Node
	if n == nil {
		n, err = o.Create(p)
		l.noted(err)
	}
	if err == nil {
		l.noted(o.Truncate(n, 0))
		_, err = o.WriteAt(n, []byte(data), 0)
		l.noted(err)
	}
}

func (l live) remove(at string) {
	vol, name, _ := strings.Cut(at, " ")
	if vol == "kv" {
		l.noted(l.keys.Delete(l.t.Context(), name))
		return
	}
	o := l.Overlay(vol)
	p, err := o.Walk(o.Root(), name, true)
	l.noted(err)
	if err == nil {
		l.noted(o.Remove(p))
	}
}

func (l live) list(of string) string {
	var names []string
	if of == "kv" {
		list, err := l.keys.Scan(l.t.Context(), "", "", 100)
		l.noted(err)
		for _, e := range list {
			names = append(names, e.Key+"="+string(e.Value))
		}
		return fmt.Sprint(names)
	}
	list, err := l.Overlay(of).List(l.Overlay(of).Root())
	l.noted(err)
	for _, e := range list {
		names = append(names, e.Name)
	}
	return fmt.Sprint(names)
}

// noted: a folder may change while a call reads it, which its commit then tells.
func (l live) noted(err error) {
	if _, errno := errors.AsType[capabilities.Errno](err); err != nil && !errno && !errors.Is(err, volume.ErrConflict) {
		l.t.Error(err)
	}
}

// happened is a call that was run.
type happened struct {
	id           string
	steps        []step
	seen         []string
	began, ended int           // places in the order of all beginnings and ends
	version      store.Version // of its commit; 0: it needed none
}

// history is what happened, side by side.
type history struct {
	mu       sync.Mutex
	late     sync.WaitGroup
	ticks    int
	versions map[string]store.Version // of the commits that are done
	calls    []happened
	stays    int // how many calls were saved before their folder was changed
}

func (h *history) tick() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ticks++
	return h.ticks
}

// forever is the end of a call whose commit nobody has seen the end of.
const forever = 1 << 30

// commits returns how a store commits, and goes wrong. Commits that are of no call
// are done.
func (h *history) commits(s store.Store, id string, what trouble) func(context.Context, *store.Commit) (store.Version, error) {
	asked := 0
	do := func(ctx context.Context, c *store.Commit) (store.Version, error) {
		v, err := s.Commit(ctx, c)
		if err == nil {
			h.mu.Lock()
			h.versions[c.ID] = v
			h.mu.Unlock()
		}
		return v, err
	}
	return func(ctx context.Context, c *store.Commit) (store.Version, error) {
		if c.ID != id {
			return s.Commit(ctx, c)
		}
		asked++
		switch what {
		case refused:
			return 0, errDisk
		case never:
			return 0, store.ErrUnknown
		case late:
			if asked == 1 {
				copied := *c
				h.late.Go(func() {
					time.Sleep(100 * time.Millisecond) // after all questions, or in their middle
					_, _ = do(context.Background(), &copied)
				})
			}
			return 0, store.ErrUnknown
		case silent, lost:
			if _, err := do(ctx, c); err != nil && !errors.Is(err, store.ErrUnknown) {
				return 0, err
			}
			if what == silent || asked == 1 {
				return 0, store.ErrUnknown
			}
		case stays, "":
		}
		return do(ctx, c)
	}
}

// call runs a call until it does not conflict, three times at most.
func (h *history) call(t testing.TB, p *site, s store.Store, name string, c planned) {
	if len(p.folders) > 0 && c.Trouble == stays {
		whole := p.folders[0].Store
		p.folders[0].Store = stuck{whole.(*volume.HostDir), nil, errDisk}
		defer func() { p.folders[0].Store = whole }()
	}
	for try := range 3 {
		id := fmt.Sprint(name, "-", try)
		p.store.wrong(h.commits(s, id, c.Trouble))
		done := happened{id: id, steps: c.Steps, began: h.tick()}
		r, err := p.begin(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		done.seen = perform(live{t, r}, id, c.Steps)
		err = r.commit(t.Context(), named(id))
		_ = r.Rollback()
		done.ended = h.tick()
		if errors.Is(err, store.ErrUnknown) {
			done.ended = forever
		}
		h.mu.Lock()
		if errors.Is(err, ErrPending) {
			h.stays++
		}
		h.calls = append(h.calls, done) // whether it is saved shows at the end
		if _, saved := h.versions[id]; err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, ErrPending) {
			h.calls = h.calls[:len(h.calls)-1]
			if saved {
				t.Errorf("%s is saved: %v", id, err)
			}
		}
		h.mu.Unlock()
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, volume.ErrConflict):
			continue
		case err != nil && !errors.Is(err, errDisk) && !errors.Is(err, store.ErrUnknown):
			t.Error(err)
		}
		return
	}
}

// run runs calls side by side, and returns what is there at the end.
func (h *history) run(t testing.TB, s store.Store, folders []string, plans [][]planned) (end model) {
	var wg sync.WaitGroup
	for n, plan := range plans {
		p := siteAt(t, s, folders...)
		wg.Go(func() {
			for m, c := range plan {
				h.call(t, p, s, fmt.Sprint(n, "-", m), c)
			}
		})
	}
	wg.Wait()
	h.late.Wait()
	end = model{}
	for at, data := range siteAt(t, s, folders...).state(t) {
		if !strings.HasPrefix(at, "outbox") {
			end[at] = data
		}
	}
	for n, c := range h.calls {
		h.calls[n].version = h.versions[c.id]
	}
	h.calls = slices.DeleteFunc(h.calls, func(c happened) bool { return c.version == 0 && c.ended == forever })
	return end
}

// fits replays a call on a model, and reports whether it sees there what it saw.
func (c happened) fits(m model) (model, bool) {
	next := maps.Clone(m)
	seen := perform(next, c.id, c.steps)
	return next, slices.Equal(seen, c.seen) && (c.version != 0 || maps.Equal(m, next))
}

// ordered says why the calls were not as if run one after another in the order of
// their commits, those that needed none in between; nothing if they were.
func ordered(calls []happened, begin, end model) string {
	var writers []happened
	for _, c := range calls {
		if c.version != 0 {
			writers = append(writers, c)
		}
	}
	slices.SortFunc(writers, func(a, b happened) int { return int(a.version) - int(b.version) })
	states := []model{begin}
	for i, c := range writers {
		for _, before := range writers[:i] {
			if c.ended < before.began {
				return fmt.Sprintf("%s is after %s, and had ended before that began", c.id, before.id)
			}
		}
		next, ok := c.fits(states[i])
		if !ok {
			return fmt.Sprintf("%+v does not fit %v", c, states[i])
		}
		states = append(states, next)
	}
	if last := states[len(states)-1]; !maps.Equal(last, end) {
		return fmt.Sprintf("the end is %v, want %v", end, last)
	}
	for _, c := range calls {
		if c.version != 0 {
			continue
		}
		from, to := 0, len(writers)
		for i, w := range writers {
			if w.ended < c.began {
				from = max(from, i+1)
			}
			if w.began > c.ended {
				to = min(to, i)
			}
		}
		if !slices.ContainsFunc(states[from:to+1], func(m model) bool { _, ok := c.fits(m); return ok }) {
			return fmt.Sprintf("%+v fits none of %v", c, states[from:to+1])
		}
	}
	return ""
}

// serialisable runs calls side by side, some of which go wrong, and checks that
// they were as if run one after another.
func serialisable(t *testing.T, check func(calls []happened, begin, end model) string, open func(t testing.TB) store.Store, folders int, volumes ...string) {
	saved, stayed, conflicts := 0, 0, 0
	enough.Check(t, func(rt *rapid.T) {
		plans := genPlans(places(volumes...)).Draw(rt, "plans")
		s := open(t)
		var dirs []string
		for range folders {
			dirs = append(dirs, quick(t))
		}
		h := &history{versions: map[string]store.Version{}}
		end := h.run(t, s, dirs, plans)
		saved += len(h.calls)
		stayed += h.stays
		for _, c := range h.calls {
			if !strings.HasSuffix(c.id, "-0") {
				conflicts++
			}
		}
		if why := check(h.calls, model{}, end); why != "" {
			rt.Fatalf("%s\n%+v", why, h.calls)
		}
	}, func() string {
		if conflicts < 1 || folders > 0 && stayed < 1 || saved < 50 {
			return fmt.Sprintf("%d calls, %d of them again after a conflict, %d of them with a folder that stayed", saved, conflicts, stayed)
		}
		return ""
	})
}

// TestSerialisable: whatever calls do at the same time, in several processes, to
// managed volumes, a folder and keys, and whatever goes wrong with their commits,
// it is as if they had run one after another.
func TestSerialisable(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { serialisable(t, ordered, open, 1, "m", "n", "f") })
	}
}

// TestSerialisablePostgres is TestSerialisable on the store that hosts share,
// where no folder takes part. Its commits tell no order.
func TestSerialisablePostgres(t *testing.T) {
	if *postgresBin == "" {
		t.Skip("-postgres names no folder of programs (Debian: /usr/lib/postgresql/15/bin of apt-get install postgresql)")
	}
	server := pgtest.Start(t, *postgresBin)
	schemas := 0
	var last *postgres.Store // one at a time: connections are few
	t.Cleanup(func() { must(t, last.Close()) })
	open := func(t testing.TB) store.Store {
		if last != nil {
			must(t, last.Close())
		}
		schemas++
		var err error
		last, err = postgres.Open(t.Context(), postgres.Options{URL: fmt.Sprintf("%s&search_path=tx%d", server.URL(), schemas)})
		must(t, err)
		return last
	}
	serialisable(t, func(calls []happened, begin, end model) string {
		if !explained(calls, begin, end) {
			return fmt.Sprintf("no order explains what they saw, and %v at the end", end)
		}
		return ""
	}, open, 0, "m", "n")
}
