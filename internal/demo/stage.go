package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// outside are the user's own files beside each package's volumes: what a tool
// must not reach.
var outside = map[string]string{
	"secret.txt":   "the user's own file, outside of every volume\n",
	"etc/hostname": "what a path out of a volume could lead to\n",
}

// stage is where the cases run: an engine with its log, the packages' sources,
// and for each package an outer folder that holds its volumes and files of the user.
type stage struct {
	state  string // folder of the log
	source string // folder of the packages' sources
	host   string // parent of the outer folders: what is compared
	log    *audit.Log
	engine *runtime.Engine
	build  tool.Builder
	last   recorder
}

func newStage(ctx context.Context, dir string, o Options) (*stage, error) {
	s := &stage{
		state:  filepath.Join(dir, "state"),
		source: filepath.Join(dir, "source"),
		host:   filepath.Join(dir, "host"),
	}
	if err := os.MkdirAll(s.host, 0o700); err != nil {
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
	if s.log, err = audit.Open(s.state, audit.Options{}); err != nil {
		return nil, err
	}
	s.engine, err = runtime.New(ctx, runtime.Options{
		Cache:    compiled(o.Cache),
		State:    s.state,
		Observer: runtime.Tee(s.log.Observer(), s.last.observer(), o.Observer),
	})
	if err != nil {
		return nil, errors.Join(err, s.log.Close())
	}
	return s, nil
}

func compiled(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "compiled")
}

func (s *stage) close() error {
	return errors.Join(s.engine.Close(context.Background()), s.log.Close())
}

// runPackage builds, loads and serves one package and runs its cases, in their
// order.
func (s *stage) runPackage(ctx context.Context, name string) (_ []*Result, err error) {
	cases, err := guests.Cases(name)
	if err != nil {
		return nil, err
	}
	src, err := tool.Load(filepath.Join(s.source, "guests", name), s.build)
	if err != nil {
		return nil, err
	}
	folders, err := s.seed(name, src.Manifest.Requests.Volumes)
	if err != nil {
		return nil, err
	}
	before, err := takeSnapshot(s.host)
	if err != nil {
		return nil, err
	}
	p, loadErr := s.engine.Load(ctx, src, runtime.Binding{Folders: folders})
	after, err := takeSnapshot(s.host)
	if err != nil {
		return nil, err
	}
	if loadErr != nil {
		return unloaded(name, cases, loadErr, before.diff(after)), nil
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

// seed makes the package's outer folder: its volumes with what the package
// starts with, and the files outside.
func (s *stage) seed(name string, vs []tool.VolumeRequest) (map[string]string, error) {
	outer := filepath.Join(s.host, name)
	for file, text := range outside {
		file = filepath.Join(outer, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	folders := map[string]string{}
	for _, v := range vs {
		folders[v.Name] = filepath.Join(outer, v.Name)
		if err := guests.Seed(name, v.Name, folders[v.Name]); err != nil {
			return nil, err
		}
	}
	return folders, nil
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
