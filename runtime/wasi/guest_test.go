package wasi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
)

// guest is an instance that forwards every function of the interface, so that
// a test can call any with any arguments. The process behind it is swapped as
// an engine does it.
type guest struct {
	api.Module
	t         testing.TB
	process   *Process
	functions map[string]api.Function
}

// forwarder returns a module that imports all functions and exports a function
// of the same name for each. Without a memory it cannot be given a pointer.
func forwarder(noMemory bool) []byte {
	m := wasmtest.Module{Memory: [2]uint32{1, 64}, NoMemory: noMemory}
	for _, s := range interfaceSignatures {
		params, results := s.types()
		m.Funcs = append(m.Funcs, wasmtest.Func{Import: ModuleName, Name: s.name, Params: params, Results: results})
	}
	for i, s := range interfaceSignatures {
		params, results := s.types()
		var body []byte
		for j := range params {
			body = append(body, wasmtest.LocalGet(j)...)
		}
		body = append(body, wasmtest.Call(i)...)
		m.Funcs = append(m.Funcs, wasmtest.Func{Name: s.name, Params: params, Results: results, Body: body})
	}
	return m.Encode()
}

func newGuest(t testing.TB, module []byte) *guest {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &guest{t: t, functions: map[string]api.Function{}}
	if _, err := Instantiate(ctx, r, func(api.Module) *Process { return g.process }); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	g.Module = m
	for name := range m.ExportedFunctionDefinitions() {
		g.functions[name] = m.ExportedFunction(name)
	}
	return g
}

// start returns a guest with a process of the options.
func start(t testing.TB, o Options) *guest {
	t.Helper()
	g := newGuest(t, forwarder(false))
	g.process = NewProcess(o)
	t.Cleanup(g.process.Close)
	return g
}

// try calls a function.
func (g *guest) try(name string, args ...uint64) (errno, error) {
	r, err := g.functions[name].Call(g.t.Context(), args...)
	if err != nil || len(r) == 0 {
		return 0, err
	}
	return errno(r[0]), nil
}

// want calls a function that is to return the errno.
func (g *guest) want(e errno, name string, args ...uint64) {
	g.t.Helper()
	got, err := g.try(name, args...)
	if err != nil {
		g.t.Fatalf("%s%d: %v", name, args, err)
	}
	if got != e {
		g.t.Fatalf("%s%d = %d, want %d", name, args, got, e)
	}
}

func (g *guest) ok(name string, args ...uint64) {
	g.t.Helper()
	g.want(success, name, args...)
}

// Where tests put things in the guest's memory.
const (
	atResult  = 0x100
	atPath    = 0x1000
	atPath2   = 0x2000
	atVectors = 0x3000
	atData    = 0x4000
	dataSize  = 0x4000
)

func (g *guest) put(at uint32, b []byte) {
	g.t.Helper()
	if !g.Memory().Write(at, b) {
		g.t.Fatal("out of memory")
	}
}

func (g *guest) bytes(at, n uint32) []byte {
	g.t.Helper()
	b, ok := g.Memory().Read(at, n)
	if !ok {
		g.t.Fatal("out of memory")
	}
	return bytes.Clone(b)
}

func (g *guest) u32(at uint32) uint32 { return le.Uint32(g.bytes(at, 4)) }
func (g *guest) u64(at uint32) uint64 { return le.Uint64(g.bytes(at, 8)) }

// path puts a path into memory and returns pointer and length.
func (g *guest) path(s string) (ptr, n uint64) {
	g.put(atPath, []byte(s))
	return atPath, uint64(len(s))
}

// vector puts one iovec for n bytes at atData and returns pointer and count.
func (g *guest) vector(n uint32) (ptr, count uint64) {
	g.put(atVectors, le.AppendUint32(le.AppendUint32(nil, atData), n))
	return atVectors, 1
}

// open opens a path below a descriptor.
func (g *guest) open(dir uint64, path string, oflags uint64, r rights, fdflags uint64) (uint64, errno) {
	g.t.Helper()
	p, n := g.path(path)
	e, err := g.try("path_open", dir, 1, p, n, oflags, uint64(r), uint64(allRights), fdflags, atResult)
	if err != nil {
		g.t.Fatalf("open %s: %v", path, err)
	}
	return uint64(g.u32(atResult)), e
}

func (g *guest) mustOpen(dir uint64, path string, oflags uint64, r rights, fdflags uint64) uint64 {
	g.t.Helper()
	fd, e := g.open(dir, path, oflags, r, fdflags)
	if e != success {
		g.t.Fatalf("open %s = %d", path, e)
	}
	return fd
}

func (g *guest) write(fd uint64, s string) (uint32, errno) {
	g.t.Helper()
	g.put(atData, []byte(s))
	p, n := g.vector(uint32(len(s)))
	e, err := g.try("fd_write", fd, p, n, atResult)
	if err != nil {
		g.t.Fatalf("write: %v", err)
	}
	return g.u32(atResult), e
}

func (g *guest) mustWrite(fd uint64, s string) {
	g.t.Helper()
	if n, e := g.write(fd, s); e != success || n != uint32(len(s)) {
		g.t.Fatalf("write %q: %d bytes, errno %d", s, n, e)
	}
}

func (g *guest) read(fd uint64, n uint32) (string, errno) {
	g.t.Helper()
	p, c := g.vector(n)
	e, err := g.try("fd_read", fd, p, c, atResult)
	if err != nil {
		g.t.Fatalf("read: %v", err)
	}
	return string(g.bytes(atData, g.u32(atResult))), e
}

// grant is the authority of a test's call.
type grant struct {
	claim  capabilities.Effective
	access capabilities.Access
}

var (
	readOnly  = grant{capabilities.Effective{ReadOnly: true}, capabilities.ReadAccess}
	writer    = grant{capabilities.Effective{Destructive: true}, capabilities.WriteAccess}
	openWorld = grant{capabilities.Effective{Destructive: true, OpenWorld: true}, capabilities.WriteAccess}
)

// fixture makes a folder with a secret beside the folder of the volume.
func fixture(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "volume")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte("TOPSECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	return top
}

// fill makes the files of the volume.
func fill(dir string) error {
	for _, d := range []string{"dir/sub", "hollow"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{"file": "old content\n", "dir/inner": "inner\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"link": "file", "dirlink": "dir", "dangling": "nothing", "loop": "loop", "out": "../secret", "outdir": "..",
		"dir/up": "../../secret", "absolute": filepath.Join(filepath.Dir(dir), "secret"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// trial is a guest over a folder with what its call recorded.
type trial struct {
	*guest
	ledger *capabilities.Ledger
	tree   *volume.Overlay
}

// The descriptors of a call's volume and scratch.
const (
	fdVolume  = 3
	fdScratch = 4
)

// begin starts a call over the volume of a fixture, with scratch.
func begin(t testing.TB, gr grant, o Options) *trial {
	t.Helper()
	c := &trial{}
	dir, err := volume.OpenDir(filepath.Join(fixture(t), "volume"))
	if err != nil {
		t.Fatal(err)
	}
	c.tree = volume.New(dir, volume.Options{Budget: &volume.Budget{Bytes: 1 << 20, Files: 100}})
	t.Cleanup(func() {
		if err := errors.Join(c.tree.Close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	c.ledger = gr.ledger()
	o.Ledger = c.ledger
	o.Volumes = []*files.Volume{
		files.New("data", "/data", c.tree, c.ledger),
		files.Scratch("/tmp", volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 16, Files: 10}}), c.ledger),
	}
	c.guest = start(t, o)
	return c
}

func (gr grant) ledger() *capabilities.Ledger {
	return capabilities.NewLedger(capabilities.Grant{
		Claim:   gr.claim,
		Volumes: []capabilities.VolumeGrant{{Name: "data", Path: "/data", Access: gr.access}},
	}, capabilities.Notify{})
}

// unchanged fails unless the call would leave the volume as it was.
func (c *trial) unchanged() {
	c.t.Helper()
	change, err := c.tree.Change()
	if err != nil {
		c.t.Fatal(err)
	}
	if !change.Empty() {
		c.t.Errorf("changed: %+v", change.Steps)
	}
}

// stopped calls a function that is to stop the guest with an error of type E.
func stopped[E error](g *guest, name string, args ...uint64) E {
	g.t.Helper()
	_, err := g.try(name, args...)
	stop, ok := errors.AsType[E](err)
	if !ok {
		g.t.Fatalf("%s%d: %v, want a stop with %T", name, args, err, stop)
	}
	if again, ok := errors.AsType[E](g.process.Stop()); !ok || error(again) != error(stop) {
		g.t.Fatalf("stop %v, want %v", g.process.Stop(), stop)
	}
	return stop
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
