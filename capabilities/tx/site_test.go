package tx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// watched is a store whose commits are counted, and go wrong as a test says.
type watched struct {
	store.Store
	commit func(ctx context.Context, c *store.Commit) (store.Version, error) // nil: as the store does

	mu      sync.Mutex
	commits int
}

func (w *watched) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	w.mu.Lock()
	w.commits++
	do := w.commit
	w.mu.Unlock()
	if do == nil {
		do = w.Store.Commit
	}
	return do(ctx, c)
}

func (w *watched) counted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits
}

func (w *watched) wrong(commit func(ctx context.Context, c *store.Commit) (store.Version, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit = commit
}

// quick returns an empty folder, in memory where there is such a place.
func quick(t testing.TB) string {
	t.Helper()
	where := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		where = "/dev/shm"
	}
	dir, err := os.MkdirTemp(where, "tx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// stores are those that a test runs on.
var stores = map[string]func(t testing.TB) store.Store{
	"memory": func(testing.TB) store.Store { return memstore.New() },
	"sqlite": func(t testing.TB) store.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: quick(t)})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	},
}

// onEach runs a test on each store.
func onEach(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

const (
	someone = "alice"
	notes   = "notes"
)

var keySpace = store.Space{Principal: someone, Package: notes, Area: kv.Area}

// site is a process that uses a store and folders. Managed volumes are "m" and
// "n", folders "f", "g" and so on.
type site struct {
	store   *watched
	intents *Intents // nil: no folders
	dirs    []string
	folders []Volume
}

// siteOf returns a process that uses a store and that many new folders.
func siteOf(t testing.TB, s store.Store, folders int) *site {
	t.Helper()
	var dirs []string
	for range folders {
		dirs = append(dirs, quick(t))
	}
	return siteAt(t, s, dirs...)
}

// siteAt returns one more process.
func siteAt(t testing.TB, s store.Store, dirs ...string) *site {
	t.Helper()
	p := &site{store: &watched{Store: s}, dirs: dirs}
	var err error
	if len(dirs) > 0 {
		p.intents, err = NewIntents(t.Context(), p.store)
		must(t, err)
		p.store.commits = 0
	}
	for i, dir := range dirs {
		h, err := volume.OpenJournaled(dir, p.intents.Of(dir))
		must(t, err)
		t.Cleanup(func() { must(t, h.Close()) })
		name := string(rune('f' + i))
		p.folders = append(p.folders, Volume{Name: name, Path: "/" + name, Store: h})
	}
	return p
}

// run is a call of a process.
type run struct {
	*Tx
	keys *kv.Overlay
	box  *outbox.Box
}

// parts returns what a call sees of now, after what is pending is in place.
func (p *site) parts(ctx context.Context) (parts Parts, now store.Snapshot, err error) {
	parts = Parts{Store: p.store, Intents: p.intents, Volumes: slices.Clone(p.folders)}
	for _, v := range p.folders {
		h, ok := v.Store.(interface{ Settle(context.Context) error })
		if !ok {
			continue
		}
		if err := h.Settle(ctx); err != nil {
			return parts, nil, err
		}
	}
	if now, err = p.store.Snapshot(ctx); err != nil {
		return parts, nil, err
	}
	for _, name := range []string{"m", "n"} {
		parts.Volumes = append(parts.Volumes, Volume{Name: name, Path: "/" + name, Tree: stored.New(ctx, stored.Options{
			Reader: stored.At(now), Blobs: p.store, Space: stored.SpaceOf(someone, notes, name),
		})})
	}
	return parts, now, nil
}

func ample() volume.Options {
	return volume.Options{Budget: &volume.Budget{Bytes: 1 << 24, Files: 10_000}}
}

func keyOptions() kv.Options {
	return kv.Options{
		Space: keySpace, Budget: &kv.Budget{Bytes: 1 << 20, Keys: 1000, Seen: 1 << 20}, Quota: store.Usage{Keys: 1000, Bytes: 1 << 20},
	}
}

func boxOptions(s outbox.Sender) outbox.Options {
	return outbox.Options{
		Sender: s, Bytes: 1 << 20, Quota: store.Usage{Keys: 1000, Bytes: 1 << 20},
		Ledger: capabilities.NewLedger(capabilities.Grant{
			Claim: capabilities.Effective{OpenWorld: true}, Outbox: []string{"example.org"},
		}, capabilities.Notify{}),
	}
}

// begin begins a call.
func (p *site) begin(ctx context.Context) (*run, error) {
	parts, now, err := p.parts(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{keys: kv.NewOverlay(kv.Stored(now, keySpace), keyOptions())}
	sender := outbox.Sender{Principal: someone, Package: notes, Tool: "t"}
	r.box = outbox.New(outbox.Stored(now, sender.Space()), boxOptions(sender))
	parts.Others = []Participant{Keys(r.keys), Outbox(r.box)}
	r.Tx = Begin(parts, ample())
	return r, r.Err()
}

// call begins a call, which is rolled back at the end of the test.
func (p *site) call(t testing.TB) *run {
	t.Helper()
	r, err := p.begin(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, r.Rollback()) })
	return r
}

func (r *run) send(t testing.TB, key string) {
	t.Helper()
	must(t, r.box.Send(t.Context(), outbox.Message{Host: "example.org", Method: "POST", Path: "/", Body: []byte("x"), Key: strings.ReplaceAll(key, " ", "-")}))
}

// commit prepares and commits.
func (r *run) commit(ctx context.Context, with store.Commit) error {
	p, err := r.Prepare(ctx)
	if err != nil {
		return err
	}
	return r.Commit(ctx, p, with)
}

// named returns a commit that has nothing but a name.
func named(id string) store.Commit { return store.Commit{ID: id, Time: time.Unix(1.9e9, 0).UTC()} }

// cat returns what a file holds, and whether it is there.
func (r *run) cat(t testing.TB, vol, path string) (string, bool) {
	t.Helper()
	o := r.Overlay(vol)
	p, err := o.Walk(o.Root(), path, true)
	must(t, err)
	if p.Node == nil {
		return "", false
	}
	info, err := o.Info(p.Node)
	must(t, err)
	b := make([]byte, info.Size)
	if info.Size > 0 {
		_, err = o.ReadAt(p.Node, b, 0)
		must(t, err)
	}
	return string(b), true
}

// state is all that a call finds: contents by volume and path, keys, messages.
func (p *site) state(t testing.TB) map[string]string {
	t.Helper()
	parts, now, err := p.parts(t.Context())
	must(t, err)
	all := map[string]string{}
	for _, v := range parts.Volumes {
		tree(t, v.base(), v.Name, ".", all)
	}
	for _, area := range []string{kv.Area, store.AreaOutbox, store.AreaIdempotency} {
		list, err := now.Scan(t.Context(), store.Range{Space: store.Space{Principal: someone, Package: notes, Area: area}}, 1000)
		must(t, err)
		for _, e := range list {
			if area != store.AreaOutbox || !strings.HasPrefix(e.Name, "\x00") {
				all[area+" "+e.Name] = string(e.Value)
			}
		}
	}
	return all
}

func tree(t testing.TB, b volume.Base, vol, dir string, all map[string]string) {
	t.Helper()
	list, err := b.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		if strings.HasPrefix(e.Name, ".sandboxd-") {
			continue
		}
		path := strings.TrimPrefix(dir+"/"+e.Name, "./")
		if e.Kind == volume.Dir {
			all[vol+" "+path] = "directory"
			tree(t, b, vol, path, all)
			continue
		}
		data, err := content(b, path)
		must(t, err)
		all[vol+" "+path] = string(data)
	}
}

// stages returns the stages that are left in a folder.
func stages(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".sandboxd-*"))
	must(t, err)
	return list
}

// pending returns the intents that are kept, by the name of their keys.
func pending(t testing.TB, s store.Store) map[string]string {
	t.Helper()
	now, err := s.Snapshot(t.Context())
	must(t, err)
	list, err := now.Scan(t.Context(), store.Range{Space: intentSpace}, 10_000)
	must(t, err)
	all := map[string]string{}
	for _, e := range list {
		if e.Key != ownerKey && !strings.HasPrefix(e.Name, "changed\x00") {
			all[e.Name] = string(e.Value)
		}
	}
	return all
}

var errDisk = errors.New("disk full")
