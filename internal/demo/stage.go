package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// outside are the user's own files beside each package's volumes: what a tool
// must not reach.
var outside = map[string]string{
	"secret.txt":   "the user's own file, outside of every volume\n",
	"etc/hostname": "what a path out of a volume could lead to\n",
}

// stage is where the cases run: a host with its state, the packages' sources, and
// for each package an outer folder that holds its volumes and files of the user.
type stage struct {
	state  string // folder of the host
	source string // folder of the packages' sources
	outer  string // parent of the outer folders: what is compared
	host   *host.Host
	store  store.Store // the host's, opened once more: what it holds is compared, too
	build  tool.Builder
	last   recorder
}

func newStage(ctx context.Context, dir string, o Options) (_ *stage, err error) {
	s := &stage{
		state:  filepath.Join(dir, "state"),
		source: filepath.Join(dir, "source"),
		outer:  filepath.Join(dir, "host"),
	}
	if err := os.MkdirAll(s.outer, 0o700); err != nil {
		return nil, err
	}
	if err := guests.Extract(s.source); err != nil {
		return nil, err
	}
	b, err := build.New(build.Options{Cache: o.Cache, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	s.build = b.Func(ctx)
	c := config.Default()
	s.host, err = host.Open(ctx, host.Options{
		State: s.state, Cache: o.Cache, Config: c,
		Observer: runtime.Tee(s.last.observer(), o.Observer), Strategy: o.Strategy,
	})
	if err != nil {
		return nil, err
	}
	if s.store, err = host.OpenStore(ctx, s.state, c); err != nil {
		return nil, errors.Join(err, s.host.Close(ctx))
	}
	return s, nil
}

func (s *stage) close() error {
	return errors.Join(s.store.Close(), s.host.Close(context.Background()))
}

// runPackage builds, loads and serves one package and runs its cases, in their
// order.
func (s *stage) runPackage(ctx context.Context, name string) ([]*Result, error) {
	spec, err := Entry(s.source, name)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, name, spec)
}

// run is runPackage with what the operator gives the package.
func (s *stage) run(ctx context.Context, name string, spec config.Package) (_ []*Result, err error) {
	cases, err := guests.Cases(name)
	if err != nil {
		return nil, err
	}
	src, err := tool.Load(spec.Source, s.build)
	if err != nil {
		return nil, err
	}
	if err := s.seed(&spec, name, src.Manifest.Requests.Volumes); err != nil {
		return nil, err
	}
	before, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	p, loadErr := s.host.Load(ctx, src, spec, trust.Options{})
	after, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if loadErr != nil {
		return unloaded(name, cases, loadErr, before.diff(after)), ctx.Err()
	}
	if err := complete(p, cases); err != nil {
		return nil, err
	}
	server, err := mcpserver.New(mcpserver.Options{Packages: mcpserver.Packages(p)})
	if err != nil {
		return nil, err
	}
	client, err := server.Connect(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	var rs []*Result
	for _, c := range cases {
		r, err := s.runCase(ctx, client, p, c)
		if err != nil {
			return nil, err
		}
		r.Package = name
		rs = append(rs, r)
	}
	return rs, nil
}

// complete refuses a package with a tool that no case calls.
func complete(p *runtime.Package, cases []guests.Case) error {
	called := map[string]bool{}
	for _, c := range cases {
		called[c.Tool] = true
	}
	for _, t := range p.Tools() {
		if name := t.Definition.Name; !called[name] {
			return fmt.Errorf("cases: none calls %s", name)
		}
	}
	return nil
}

// seed makes the package's outer folder: its volumes with what the package
// starts with, and the files outside.
func (s *stage) seed(spec *config.Package, name string, vs []tool.VolumeRequest) error {
	outer := filepath.Join(s.outer, name)
	for file, text := range outside {
		file = filepath.Join(outer, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return Seed(spec, name, outer, vs)
}

// look returns what is there: the outer folders, and what the store holds of the
// packages.
func (s *stage) look(ctx context.Context) (snapshot, error) {
	shot, err := takeSnapshot(s.outer)
	if err != nil {
		return nil, err
	}
	return shot, shot.addStored(ctx, s.store)
}

// recorder keeps the result of the last call: a client is not told the outcome
// by its name. Cases run one after the other.
type recorder struct {
	mu     sync.Mutex
	result *runtime.Result
}

func (r *recorder) observer() runtime.Observer {
	return runtime.Observer{CallEnd: func(_ runtime.CallInfo, res *runtime.Result) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.result = res
	}}
}

// take returns the last result and forgets it.
func (r *recorder) take() *runtime.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := r.result
	r.result = nil
	return res
}
