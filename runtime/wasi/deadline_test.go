package wasi

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
)

// TestEndedContext: once its context has ended a guest can call nothing.
func TestEndedContext(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	var out strings.Builder
	c := begin(t, writer, Options{Stdin: strings.NewReader("input"), Stdout: &out})
	p, n := c.path("new")
	c.vector(1)
	args := map[string][]uint64{
		"path_create_directory": {fdVolume, p, n},
		"fd_write":              {1, atVectors, 1, atResult},
		"fd_close":              {fdVolume},
	}
	for _, s := range interfaceSignatures {
		c.process.stop = nil
		a, ok := args[s.name]
		if !ok {
			a = make([]uint64, len(s.params))
		}
		_, err := c.functions[s.name].Call(ctx, a...)
		if stop, ok := errors.AsType[*InterruptError](err); !ok || !errors.Is(stop, cause) || !errors.Is(c.process.Stop(), cause) {
			t.Errorf("%s: %v, stop %v", s.name, err, c.process.Stop())
		}
	}
	c.process.stop = nil
	c.unchanged()
	c.ok("fd_prestat_get", fdVolume, atResult)
	if out.Len() > 0 {
		t.Errorf("output %q", out.String())
	}
}

// TestStraightCalls: a guest without a loop, which no check of the engine
// stops, ends soon after its deadline although its calls would take a minute.
func TestStraightCalls(t *testing.T) {
	const size, deadline = 64 << 20, 100 * time.Millisecond
	var body []byte
	for range 1000 {
		body = append(body, wasmtest.Seq(wasmtest.I32Const(0), wasmtest.I32Const(size), wasmtest.Call(0), wasmtest.Drop)...)
	}
	m := wasmtest.Module{Funcs: []wasmtest.Func{
		{Import: ModuleName, Name: "random_get", Params: []byte{wasmtest.I32, wasmtest.I32}, Results: []byte{wasmtest.I32}},
		{Name: "main", Body: body},
	}, Memory: [2]uint32{size >> 16, 0}}
	r := wazero.NewRuntime(t.Context())
	defer r.Close(context.Background())
	process := NewProcess(Options{Random: rand.NewChaCha8([32]byte{})})
	if _, err := Instantiate(t.Context(), r, func(api.Module) *Process { return process }); err != nil {
		t.Fatal(err)
	}
	guest, err := r.Instantiate(t.Context(), m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	begun := time.Now()
	_, err = guest.ExportedFunction("main").Call(ctx)
	if _, ok := errors.AsType[*InterruptError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped by %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v with a deadline of %v", took, deadline)
	}
}

// ender ends a context as soon as anything is asked of it, and counts in pieces
// of any size how much is asked for after that.
type ender struct {
	volume.Base
	end  func()
	sent int64 // bytes that were asked for
}

const enderSize = 3 << 20

func (e *ender) take(b []byte) (int, error) {
	e.end()
	e.sent += int64(len(b))
	return len(b), nil
}

func (e *ender) Read(b []byte) (int, error)            { return e.take(b) }
func (e *ender) Write(b []byte) (int, error)           { return e.take(b) }
func (e *ender) ReadAt(b []byte, _ int64) (int, error) { return e.take(b) }
func (e *ender) Close() error                          { return nil }

func (e *ender) Open(string) (volume.Content, error) { return e, nil }

func (e *ender) Lstat(name string) (volume.Info, volume.Stamp, error) {
	if name != "big" {
		return e.Base.Lstat(name)
	}
	return volume.Info{Size: enderSize, Mode: 0o644}, volume.Stamp{Exists: true, Size: enderSize, Mode: 0o644}, nil
}

func (e *ender) ReadDir(string) ([]volume.Entry, error) {
	e.end()
	return []volume.Entry{{Name: "big"}}, nil
}

// TestLongCalls: a call that moves many bytes stops in its middle when the
// context ends, after one piece.
func TestLongCalls(t *testing.T) {
	const at, size = 1 << 16, enderSize - 1
	for _, c := range []struct {
		name string
		most int64 // bytes asked of the host
		args []uint64
	}{
		{"random_get", maxPiece, []uint64{at, size}},
		{"fd_read", maxPiece, []uint64{4, atVectors, 1, atResult}},
		{"fd_pread", maxPiece, []uint64{4, atVectors, 1, 1, atResult}},
		{"fd_pwrite", 128 << 10, []uint64{4, atVectors, 1, 1, atResult}},
		{"fd_write", maxPiece, []uint64{1, atVectors, 1, atResult}},
		{"fd_write", maxPiece, []uint64{2, atVectors, 1, atResult}},
		{"fd_readdir", 0, []uint64{3, at, size, 0, atResult}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			e := &ender{Base: volume.Mem(), end: cancel}
			l := writer.ledger()
			tree := volume.New(e, volume.Options{Budget: &volume.Budget{Bytes: 1 << 24, Files: 10}})
			g := start(t, Options{
				Stdout: e, Stderr: e, Random: e, Ledger: l,
				Volumes: []*files.Volume{files.New("data", "/data", tree, l)},
			})
			if _, ok := g.Memory().Grow(enderSize >> 16); !ok {
				t.Fatal("memory does not grow")
			}
			if fd := g.mustOpen(fdVolume, "big", 0, rightRead|rightWrite, 0); fd != 4 {
				t.Fatalf("descriptor %d", fd)
			}
			g.vectors(at, size)
			_, err := g.functions[c.name].Call(ctx, c.args...)
			if _, ok := errors.AsType[*InterruptError](err); !ok {
				t.Errorf("stopped by %v", err)
			}
			if e.sent > c.most {
				t.Errorf("%d bytes after the end, want %d at most", e.sent, c.most)
			}
		})
	}
}

// TestPieces: what is moved in pieces arrives whole.
func TestPieces(t *testing.T) {
	const at, size = 1 << 16, 5<<19 + 7
	data := make([]byte, size)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), data); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	l := writer.ledger()
	tree := volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 1 << 24, Files: 10}})
	g := start(t, Options{
		Stdout: &out, Random: rand.NewChaCha8([32]byte{1}), Ledger: l,
		Volumes: []*files.Volume{files.Scratch("/tmp", tree, l)},
	})
	if _, ok := g.Memory().Grow(size>>16 + 1); !ok {
		t.Fatal("memory does not grow")
	}
	g.ok("random_get", at, size)
	g.vectors(at, size)
	g.ok("fd_write", 1, atVectors, 1, atResult)
	fd := g.mustOpen(fdVolume, "file", openCreate, rightRead|rightWrite, flagAppend)
	g.ok("fd_write", fd, atVectors, 1, atResult)
	g.put(at, make([]byte, size))
	g.ok("fd_pread", fd, atVectors, 1, 0, atResult)
	if n := g.u32(atResult); n != size {
		t.Errorf("%d bytes read", n)
	}
	if string(g.bytes(at, size)) != string(data) || out.String() != string(data) {
		t.Error("the bytes are others")
	}
}
