package runtime

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/tool"
)

// ErrVolume: a volume of a package cannot be given.
var ErrVolume = errors.New("volume")

// localPrincipal is the principal where there is one user.
const localPrincipal = "local"

// folders holds the open folders of an engine, one per folder on disk: two
// packages that share a folder share its lock.
type folders struct {
	mu   sync.Mutex
	open map[string]*volume.HostDir
}

// get opens the folder, or returns it where it is open.
func (f *folders) get(dir string, open func(string) (*volume.HostDir, error)) (*volume.HostDir, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := resolved(dir)
	if d, ok := f.open[key]; ok {
		return d, nil
	}
	d, err := open(key)
	if err != nil {
		return nil, err
	}
	if f.open == nil {
		f.open = map[string]*volume.HostDir{}
	}
	f.open[key] = d
	return d, nil
}

// close closes all of them.
func (f *folders) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, d := range f.open {
		errs = append(errs, d.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}

// volumes says where each requested volume of a package lives.
type volumes struct {
	bound []boundVolume
	owner managedOwner
}

type boundVolume struct {
	request tool.VolumeRequest
	dir     string
	managed bool
}

// bind finds a folder for each requested volume: the operator's, or a managed
// one below the state folder, which is made when it is first used.
func (e *Engine) bind(pkg, source string, requests []tool.VolumeRequest, given map[string]string) (volumes, error) {
	rest := maps.Clone(given)
	vs := volumes{owner: managedOwner{dir: filepath.Join(e.state, "volumes", localPrincipal, pkg), source: source}}
	folderOf := map[string]string{}
	for _, r := range requests {
		dir, ok := given[r.Name]
		delete(rest, r.Name)
		switch {
		case ok:
			if err := e.checkFolder(dir); err != nil {
				return volumes{}, fmt.Errorf("%w %s: %w", ErrVolume, r.Name, err)
			}
			for other, folder := range folderOf {
				if overlap(dir, folder) {
					return volumes{}, fmt.Errorf("%w %s: %s: overlaps the folder of volume %s; give each its own", ErrVolume, r.Name, dir, other)
				}
			}
			folderOf[r.Name] = dir
		case e.state == "":
			return volumes{}, fmt.Errorf("%w %s: no folder given and no state folder for a managed one", ErrVolume, r.Name)
		default:
			if err := vs.owner.check(); err != nil {
				return volumes{}, fmt.Errorf("%w %s: %w", ErrVolume, r.Name, err)
			}
			dir = filepath.Join(vs.owner.dir, r.Name)
		}
		vs.bound = append(vs.bound, boundVolume{request: r, dir: dir, managed: !ok})
	}
	if len(rest) > 0 {
		name := slices.Sorted(maps.Keys(rest))[0]
		return volumes{}, fmt.Errorf("%w %s: package %s does not request it", ErrVolume, name, pkg)
	}
	return vs, nil
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

// open returns the volumes as participants of a transaction.
func (vs volumes) open(f *folders) ([]tx.Volume, error) {
	var opened []tx.Volume
	for _, v := range vs.bound {
		how := volume.OpenDir
		if v.managed {
			how = volume.Managed
			if err := vs.owner.claim(); err != nil {
				return nil, fmt.Errorf("%w %s: %w", ErrVolume, v.request.Name, err)
			}
		}
		d, err := f.get(v.dir, how)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrVolume, v.request.Name, err)
		}
		opened = append(opened, tx.Volume{Name: v.request.Name, Path: v.request.Path, Store: d})
	}
	return opened, nil
}

// abandoned tells the observer what killed processes left in the folders.
func (vs volumes) abandoned(stores []tx.Volume, o Observer) {
	for i, s := range stores {
		d, ok := s.Store.(*volume.HostDir)
		if !ok || o.Abandoned == nil {
			continue
		}
		if stages := d.Abandoned(); len(stages) > 0 {
			o.Abandoned(vs.bound[i].dir, stages)
		}
	}
}
