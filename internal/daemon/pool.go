package daemon

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// entry is a loaded package, shared by those that serve it.
type entry struct {
	name   string
	digest string
	spec   config.Package
	pkg    *runtime.Package
	users  int           // guarded by the pool
	ready  chan struct{} // closed when pkg or err is set
	err    error
	broke  atomic.Pointer[error] // why it did not load, once it was listed
}

// broken returns why a package that is listed did not load, or nil.
func (e *entry) broken() error {
	if err := e.broke.Load(); err != nil {
		return *err
	}
	return nil
}

// same reports whether the entry is what would be loaded.
func (e *entry) same(src *tool.Package, spec config.Package) bool {
	return e.digest == src.Digest && reflect.DeepEqual(e.spec, spec)
}

// pool holds the loaded packages by name.
type pool struct {
	load func(ctx context.Context, e *entry, src *tool.Package, o loading) (*runtime.Package, error)

	mu      sync.Mutex
	entries map[string]*entry
}

func newPool(load func(context.Context, *entry, *tool.Package, loading) (*runtime.Package, error)) *pool {
	return &pool{load: load, entries: map[string]*entry{}}
}

// loading says how a package is loaded. The zero value refuses one that changed,
// and does not list one before it is loaded.
type loading struct {
	trustChanges bool
	later        bool // one whose tools are on record is listed first
}

// ConflictError: a connection brings a package under a name that is served
// already, and it is not the same.
type ConflictError struct {
	Name  string
	Field string // what differs: digest, Folders, …
}

// Error names the package and the mend.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("package %s: the running daemon serves it with another %s; give the same here, as with --config or --volume of the daemon, or stop the daemon, or use another state folder with --state", e.Name, e.Field)
}

// fresh loads a package without giving its name away.
func (p *pool) fresh(ctx context.Context, src *tool.Package, spec config.Package, o loading) (*entry, error) {
	e := &entry{name: host.Name(src, spec), digest: src.Digest, spec: spec, ready: make(chan struct{})}
	defer close(e.ready)
	e.pkg, e.err = p.load(ctx, e, src, o)
	return e, e.err
}

// install gives the entries their names and counts a user for each.
func (p *pool) install(es []*entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range es {
		e.users++
		p.entries[e.name] = e
	}
}

// acquire returns the package of that name where it is the same as the one that
// is asked for, or else loads it. It returns [*ConflictError] where another one
// has the name.
func (p *pool) acquire(ctx context.Context, src *tool.Package, spec config.Package, o loading) (*entry, error) {
	name := host.Name(src, spec)
	for {
		p.mu.Lock()
		e, there := p.entries[name]
		if !there {
			e = &entry{name: name, digest: src.Digest, spec: spec, users: 1, ready: make(chan struct{})}
			p.entries[name] = e
			p.mu.Unlock()
			return e, p.fill(ctx, e, src, o)
		}
		if !e.same(src, spec) {
			p.mu.Unlock()
			return nil, &ConflictError{Name: name, Field: differs(e, src, spec)}
		}
		e.users++
		p.mu.Unlock()
		select {
		case <-e.ready:
		case <-ctx.Done():
			p.release(e)
			return nil, context.Cause(ctx)
		}
		if e.err == nil {
			return e, nil
		}
		p.release(e) // whoever loaded it could not; this one may
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// differs names the first thing in which a package that is served differs from
// what is asked for.
func differs(e *entry, src *tool.Package, spec config.Package) string {
	if e.digest != src.Digest {
		return "digest"
	}
	served, asked := reflect.ValueOf(e.spec), reflect.ValueOf(spec)
	for i := range served.NumField() {
		if !reflect.DeepEqual(served.Field(i).Interface(), asked.Field(i).Interface()) {
			return strings.ToLower(served.Type().Field(i).Name)
		}
	}
	return "setting"
}

func (p *pool) fill(ctx context.Context, e *entry, src *tool.Package, o loading) error {
	e.pkg, e.err = p.load(ctx, e, src, o)
	if e.err != nil {
		p.mu.Lock()
		if p.entries[e.name] == e {
			delete(p.entries, e.name)
		}
		p.mu.Unlock()
	}
	close(e.ready)
	return e.err
}

// release counts a user less, and reports whether that was the last one: the
// package is the caller's to close then.
func (p *pool) release(e *entry) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	if e.users > 0 || e.err != nil {
		return false
	}
	if p.entries[e.name] == e {
		delete(p.entries, e.name)
	}
	return true
}

// forget takes the name from an entry that is not to be shared any more. Its users
// release it as ever.
func (p *pool) forget(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[e.name] == e {
		delete(p.entries, e.name)
	}
}

// has reports whether a package of that name is served.
func (p *pool) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, there := p.entries[name]
	return there
}
