package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/tool"
)

// ErrVolume: a volume of a package cannot be given.
var ErrVolume = errors.New("volume")

// LocalPrincipal is the principal where there is one user.
const LocalPrincipal = "local"

// sharedPackage is whose the managed volumes are that packages share. No package
// has a name with an underscore.
const sharedPackage = "_shared"

// maxHeld is how many principals' volumes a package holds open between calls.
const maxHeld = 64

// volumes says where each requested volume of a package lives, and holds open
// those of some principals who called. It is safe for concurrent use.
type volumes struct {
	engine *Engine
	pkg    string
	bound  []boundVolume
	shared map[string]string // names of the managed volumes that packages share, by volume
	none   []*folder         // what is open where all are managed; nil: some are not

	mu   sync.Mutex           // before that of folders
	held map[string][]*folder // by principal, in the order of bound; nil for one that is managed
}

// boundVolume is a volume with what the operator binds it to; managed for the
// package alone where that is nothing.
type boundVolume struct {
	request tool.VolumeRequest
	folder  string // of the host
	shared  string // name of a managed volume that packages share
}

// bind finds a place for each requested volume: the operator's folder, or a
// managed one in the store.
func (e *Engine) bind(pkg string, requests []tool.VolumeRequest, b Binding) (*volumes, error) {
	vs := &volumes{engine: e, pkg: pkg, shared: map[string]string{}, held: map[string][]*folder{}}
	for _, r := range requests {
		v := boundVolume{request: r, folder: b.Folders[r.Name], shared: b.Managed[r.Name]}
		if err := e.checkBound(vs, v, b); err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrVolume, r.Name, err)
		}
		vs.bound = append(vs.bound, v)
		if v.shared != "" {
			vs.shared[r.Name] = v.shared
		}
	}
	if !slices.ContainsFunc(vs.bound, func(v boundVolume) bool { return v.folder != "" }) {
		vs.none = make([]*folder, len(vs.bound))
	}
	given := slices.Sorted(maps.Keys(b.Folders))
	for _, name := range append(given, slices.Sorted(maps.Keys(b.Managed))...) {
		if !slices.ContainsFunc(requests, func(r tool.VolumeRequest) bool { return r.Name == name }) {
			return nil, fmt.Errorf("%w %s: package %s does not request it", ErrVolume, name, pkg)
		}
	}
	return vs, nil
}

// checkBound refuses a volume that cannot be given beside those that are bound.
func (e *Engine) checkBound(vs *volumes, v boundVolume, b Binding) error {
	_, folder := b.Folders[v.request.Name]
	_, shared := b.Managed[v.request.Name]
	switch {
	case folder && shared:
		return errors.New("a folder and a managed volume are given; give one")
	case folder && e.shared:
		return errors.New("a folder of this host is given, and the store is shared by machines that do not see it; leave it out for a managed volume")
	case folder:
		if err := e.checkFolder(v.folder); err != nil {
			return err
		}
		for _, other := range vs.bound {
			if other.folder != "" && overlap(v.folder, other.folder) {
				return fmt.Errorf("%s: overlaps the folder of volume %s; give each its own", v.folder, other.request.Name)
			}
		}
		return nil
	case e.store == nil:
		return errors.New("no folder given and no store for a managed one")
	case shared && !tool.ValidPackageName(v.shared):
		return fmt.Errorf("managed volume %q: want up to 64 lower-case letters, digits and hyphens", v.shared)
	case shared:
		for _, other := range vs.bound {
			if other.shared == v.shared {
				return fmt.Errorf("managed volume %s is that of volume %s, too; give each its own", v.shared, other.request.Name)
			}
		}
		return nil
	}
	return nil
}

// checkFolder refuses what is no folder, and what would give a tool the host's
// own folders: compiled code that is run, or other packages' volumes.
func (e *Engine) checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", dir)
	}
	for _, own := range e.own {
		if overlap(dir, own) {
			return fmt.Errorf("%s: overlaps sandboxd's own folder %s; choose another", dir, own)
		}
	}
	return nil
}

// overlap reports whether one folder is the other or holds it.
func overlap(a, b string) bool {
	a, b = resolved(a), resolved(b)
	return within(a, b) || within(b, a)
}

func within(dir, parent string) bool {
	rel, err := filepath.Rel(parent, dir)
	return err == nil && filepath.IsLocal(rel)
}

// resolved returns the absolute path without links, as far as it exists.
func resolved(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for missing := ""; ; {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return filepath.Join(real, missing)
		}
		parent := filepath.Dir(abs)
		if parent == abs {
			return filepath.Join(abs, missing)
		}
		missing = filepath.Join(filepath.Base(abs), missing)
		abs = parent
	}
}

// open returns the principal's volumes for one call, in the order of the
// requests. release them when the call has ended.
func (vs *volumes) open(principal string) (opened []*folder, release func() error, err error) {
	if vs.none != nil {
		return vs.none, func() error { return nil }, nil
	}
	held, err := vs.hold(principal)
	if err != nil {
		return nil, nil, err
	}
	return held, func() error { return vs.release(held) }, nil
}

// hold returns the principal's volumes, with one more user of their folders.
func (vs *volumes) hold(principal string) ([]*folder, error) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	opened, ok := vs.held[principal]
	if !ok || slices.ContainsFunc(opened, func(d *folder) bool { return d != nil && !d.current() }) {
		if err := vs.forget(principal); err != nil {
			return nil, err
		}
		var err error
		if opened, err = vs.acquire(); err != nil {
			return nil, err
		}
		for other := range vs.held {
			if len(vs.held) < maxHeld {
				break
			}
			if err := vs.forget(other); err != nil {
				return nil, errors.Join(err, vs.release(opened))
			}
		}
		vs.held[principal] = opened
	}
	for _, d := range opened {
		vs.engine.folders.retain(d)
	}
	return opened, nil
}

// acquire opens the folders.
func (vs *volumes) acquire() (opened []*folder, err error) {
	for _, v := range vs.bound {
		d, err := vs.acquireOne(v)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w %s: %w", ErrVolume, v.request.Name, err), vs.release(opened))
		}
		opened = append(opened, d)
	}
	return opened, nil
}

func (vs *volumes) acquireOne(v boundVolume) (*folder, error) {
	if v.folder == "" {
		return nil, nil
	}
	return vs.engine.folders.acquire(v.folder, vs.engine.openFolder)
}

// openFolder opens a folder of the host. With a store its changes are committed
// there first.
func (e *Engine) openFolder(path string) (*volume.HostDir, error) {
	if e.intents == nil {
		return volume.OpenDir(path)
	}
	d, err := volume.OpenJournaled(path, e.intents.Of(path))
	if err == nil {
		d.Watch(e.disk)
	}
	return d, err
}

// forget releases what is held open for a principal.
func (vs *volumes) forget(principal string) error {
	opened := vs.held[principal]
	delete(vs.held, principal)
	return vs.release(opened)
}

func (vs *volumes) release(opened []*folder) error {
	var errs []error
	for _, d := range opened {
		if err := vs.engine.folders.release(d); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// close releases all that is held open. No call may follow.
func (vs *volumes) close() error {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	var errs []error
	for principal := range vs.held {
		errs = append(errs, vs.forget(principal))
	}
	return errors.Join(errs...)
}

// parts returns the open volumes as parts of a transaction, after what killed
// processes had committed to them is in place. reader is the call's snapshot.
func (vs *volumes) parts(ctx context.Context, principal string, opened []*folder, reader *lateSnapshot) ([]tx.Volume, error) {
	if len(vs.bound) == 0 {
		return nil, nil
	}
	list, at := make([]tx.Volume, 0, len(vs.bound)), stored.At(reader)
	for i, v := range vs.bound {
		t := tx.Volume{Name: v.request.Name, Path: v.request.Path}
		if d := opened[i]; d != nil {
			if err := d.dir.Settle(ctx); err != nil {
				return nil, fmt.Errorf("%w %s: %w", ErrVolume, v.request.Name, err)
			}
			t.Store = d.dir
		} else {
			t.Tree = stored.New(ctx, stored.Options{Reader: at, Blobs: reader, Space: vs.space(principal, v)})
		}
		list = append(list, t)
	}
	return list, nil
}

// space says where in the store a managed volume is.
func (vs *volumes) space(principal string, v boundVolume) store.Space {
	if v.shared != "" {
		return stored.SpaceOf(principal, sharedPackage, v.shared)
	}
	return stored.SpaceOf(principal, vs.pkg, v.request.Name)
}

// abandoned tells the observer what killed processes left in the folders.
func abandoned(opened []*folder, w *reporter) {
	if w.observer.Abandoned == nil {
		return
	}
	for _, d := range opened {
		if d == nil {
			continue
		}
		if stages := d.dir.Abandoned(); len(stages) > 0 {
			w.abandoned(d.path, stages)
		}
	}
}
