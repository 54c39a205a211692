package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// worlds are where the calls are made: an engine over a store in memory. Each
// call is that of another principal, so that none sees what another left. Nothing
// leaves it: no folder of the host is bound, and nobody delivers what lies in the
// outbox.
type worlds struct {
	options Options
	source  *tool.Package
	folder  *os.Root // of the package
	store   *memstore.Store
	engine  *runtime.Engine
	loaded  map[string]*runtime.Package // by what they are held to
	n       int                         // worlds so far
}

// terms are what a call is held to.
type terms struct {
	claims  map[string]capabilities.Claim // by tool; nil: as declared
	named   string                        // tells claims apart
	relaxed []string                      // lines of the relaxations in force
}

// key tells terms apart.
func (t terms) key() string { return t.named + "\n" + strings.Join(t.relaxed, "\n") }

func openWorlds(ctx context.Context, o Options) (w *worlds, err error) {
	w = &worlds{options: o, source: o.Package, store: memstore.New(), loaded: map[string]*runtime.Package{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.options.Folder == "" {
		w.options.Folder = o.Package.Dir
	}
	if w.folder, err = regular.Folder(o.Package.Dir); err != nil {
		return w, err
	}
	w.engine, err = runtime.New(context.WithoutCancel(ctx), runtime.Options{
		Cache: o.Cache, Store: w.store, Observer: o.Observer,
	})
	return w, err
}

func (w *worlds) close() error {
	var err error
	if w.engine != nil {
		err = w.engine.Close(context.Background())
	}
	err = errors.Join(err, w.store.Close())
	if w.folder != nil {
		err = errors.Join(err, w.folder.Close())
	}
	return err
}

// load returns the package as it is under terms. Claims are held against each
// call to its end, past what would stop it, and nothing of it is kept.
func (w *worlds) load(ctx context.Context, t terms) (*runtime.Package, error) {
	if p := w.loaded[t.key()]; p != nil {
		return p, nil
	}
	src := *w.source
	if t.claims != nil {
		src.Manifest.Tools = slices.Clone(src.Manifest.Tools)
		for i, d := range src.Manifest.Tools {
			src.Manifest.Tools[i].Claim = t.claims[d.Name]
		}
	}
	b := w.options.Operator
	b.Folders, b.Managed, b.Mode = nil, nil, capabilities.Report
	if t.named == unclaimed {
		b.Mode = capabilities.Enforce // what goes before a call is kept in its world
	}
	b.Outbox = src.Manifest.Requests.Outbox
	b.Relaxations = src.Manifest.Relaxations.Only(func(line string) bool { return slices.Contains(t.relaxed, line) })
	p, err := w.engine.Load(ctx, &src, b)
	if err != nil {
		return nil, err
	}
	w.loaded[t.key()] = p
	return p, nil
}

// describe asks a module that describes itself for its tools, and writes them
// into the manifest, where other claims can take their place.
func (w *worlds) describe(ctx context.Context) error {
	p, err := w.load(ctx, terms{})
	if err != nil {
		return err
	}
	src := *w.source
	src.Manifest.Tools = nil
	for _, t := range p.Tools() {
		src.Manifest.Tools = append(src.Manifest.Tools, t.Definition)
	}
	w.source = &src
	return nil
}

// seed makes a world: the volumes of a principal that nobody was before.
func (w *worlds) seed(ctx context.Context, folder, name string) (principal string, err error) {
	w.n++
	principal = "world-" + strconv.Itoa(w.n)
	for _, v := range w.source.Manifest.Requests.Volumes {
		at, err := w.content(folder, v.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it begins empty
		}
		if err == nil {
			_, err = stored.Import(ctx, w.store, stored.SpaceOf(principal, name, v.Name), seedFS{at.FS()}, stored.ImportOptions{})
			err = errors.Join(err, at.Close())
		}
		if err != nil {
			return "", fmt.Errorf("seed of volume %s: %w", v.Name, err)
		}
	}
	return principal, nil
}

// content opens what a volume begins with.
func (w *worlds) content(folder, volume string) (*os.Root, error) {
	if dir, ok := w.options.Contents[volume]; ok {
		return regular.Folder(dir)
	}
	return regular.Subfolder(w.folder, filepath.Join(filepath.FromSlash(folder), volume))
}

// keep is the name of a file that stands for an empty folder.
const keep = ".keep"

// seedFS is a tree without the files that keep empty folders.
type seedFS struct{ fs.FS }

// ReadDir lists a folder.
func (s seedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(s.FS, name)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Name() == keep && e.Type().IsRegular() }), err
}

// try makes a call in a world of its own, under terms.
func (w *worlds) try(ctx context.Context, c *call, t terms) (*runtime.Result, error) {
	p, err := w.load(ctx, t)
	if err != nil {
		return nil, err
	}
	principal, err := w.seed(ctx, c.Seed, p.Name())
	if err != nil {
		return nil, err
	}
	defer w.store.Forget(principal)
	for i, b := range c.Before {
		free, err := w.load(ctx, terms{claims: map[string]capabilities.Claim{}, named: unclaimed})
		if err != nil {
			return nil, err
		}
		r := free.Call(ctx, request(b, principal))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if r.Outcome != runtime.OK {
			return r, &beforeError{n: i + 1, tool: b.Tool, outcome: r.Outcome}
		}
	}
	q := request(c.Call, principal)
	q.Observe, q.DryRun = true, true
	r := p.Call(ctx, q)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, nil
}

func request(c Call, principal string) runtime.Request {
	return runtime.Request{
		Tool: c.Tool, Arguments: c.Arguments, Principal: principal, ClientCapabilities: tool.ClientCapabilities(),
	}
}

// beforeError: a call that goes before another did not end well.
type beforeError struct {
	n       int
	tool    string
	outcome runtime.Outcome
}

func (e *beforeError) Error() string {
	return fmt.Sprintf("call %d before it (%s) ended in %s", e.n, e.tool, e.outcome)
}
