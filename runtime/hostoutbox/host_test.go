package hostoutbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// guest is an instance that forwards the function.
type guest struct {
	api.Module
	t       testing.TB
	process *wasi.Process
	box     *outbox.Box
}

var (
	errBroken = errors.New("broken")
	open      = capabilities.Grant{Claim: capabilities.Effective{OpenWorld: true}, Outbox: []string{"h.example"}}
)

// known is what was sent before: nothing, or an error.
type known struct{ err error }

func (k known) Known(context.Context, string, string) (bool, error) { return false, k.err }

func forwarder(noMemory bool) []byte {
	m := wasmtest.Module{Memory: [2]uint32{32, 32}, NoMemory: noMemory}
	f := wasmtest.Func{Import: ModuleName, Name: sendName, Params: sendParams(), Results: []byte{wasmtest.I32}}
	m.Funcs = append(m.Funcs, f)
	f.Import = ""
	for p := range f.Params {
		f.Body = append(f.Body, wasmtest.LocalGet(p)...)
	}
	f.Body = append(f.Body, wasmtest.Call(0)...)
	m.Funcs = append(m.Funcs, f)
	return m.Encode()
}

func newGuest(t testing.TB, module []byte, grant capabilities.Grant) *guest {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &guest{t: t, process: wasi.NewProcess(wasi.Options{})}
	g.serve(known{}, grant, 8<<20)
	if _, err := Instantiate(t.Context(), r, func(api.Module) (*wasi.Process, *outbox.Box) { return g.process, g.box }); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	g.Module = m
	return g
}

func (g *guest) serve(b outbox.Base, grant capabilities.Grant, bytes int64) {
	g.box = outbox.New(b, outbox.Options{
		Ledger: capabilities.NewLedger(grant, capabilities.Notify{}), Bytes: bytes, Quota: store.Usage{Keys: 1000, Bytes: 16 << 20},
	})
}

func (g *guest) try(ctx context.Context, args ...uint64) (errno, error) {
	r, err := g.ExportedFunction(sendName).Call(ctx, args...)
	if err != nil {
		return 0, err
	}
	return errno(r[0]), nil
}

// send sends host, method, path, content type, key and body.
func (g *guest) send(ctx context.Context, fields ...string) (errno, error) {
	g.t.Helper()
	at, args := uint64(64), []uint64{}
	for _, f := range fields {
		if !g.Memory().WriteString(uint32(at), f) {
			g.t.Fatal("out of memory")
		}
		args = append(args, at, uint64(len(f)))
		at += uint64(len(f)) + 1
	}
	return g.try(ctx, args...)
}

func (g *guest) told(fields ...string) errno {
	g.t.Helper()
	e, err := g.send(g.t.Context(), fields...)
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func TestSend(t *testing.T) {
	g := newGuest(t, forwarder(false), open)
	if e := g.told("h.example", "PUT", "/x?y=1", "a/b", "k", "body"); e != success {
		t.Fatalf("got %d", e)
	}
	if e := g.told("h.example", "POST", "/", "", "", ""); e != success {
		t.Fatalf("got %d", e)
	}
	if e := g.told("h.example", "PUT", "/again", "", "k", "again"); e != success {
		t.Fatalf("got %d", e)
	}
	c, err := g.box.Change()
	if err != nil || len(c.Guards) != 2 {
		t.Fatalf("got %+v, %v", c, err)
	}
	r, err := outbox.Decode(c.Writes[0].Value)
	want := outbox.Message{Host: "h.example", Method: "PUT", Path: "/x?y=1", ContentType: "a/b", Key: "k", Body: []byte("body")}
	if err != nil || fmt.Sprint(r.Message) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestAnswers(t *testing.T) {
	g := newGuest(t, forwarder(false), open)
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		fields []string
		want   errno
	}{
		"another host": {[]string{"x.example", "POST", "/", "", "", ""}, 2},
		"no host":      {[]string{"", "POST", "/", "", "", ""}, eINVAL},
		"method":       {[]string{"h.example", "GET", "/", "", "", ""}, eINVAL},
		"path":         {[]string{"h.example", "POST", "/" + long, "", "", ""}, eINVAL},
		"type":         {[]string{"h.example", "POST", "/", "\n", "", ""}, eINVAL},
		"key":          {[]string{"h.example", "POST", "/", "", " ", ""}, eINVAL},
		"body":         {[]string{"h.example", "POST", "/", "", "", long + "x"}, 22},
		"longest body": {[]string{"h.example", "POST", "/", "", "", long}, success},
	} {
		if got := g.told(c.fields...); got != c.want {
			t.Errorf("%s = %d, want %d", name, got, c.want)
		}
	}
	for range outbox.MaxMessages - 1 {
		if e := g.told("h.example", "POST", "/", "", "", "x"); e != success {
			t.Fatalf("got %d", e)
		}
	}
	if e := g.told("h.example", "POST", "/", "", "", "x"); e != eNOBUFS {
		t.Errorf("one more = %d", e)
	}
	g.box = outbox.New(known{}, outbox.Options{Ledger: capabilities.NewLedger(open, capabilities.Notify{}), Bytes: 1 << 20})
	if e := g.told("h.example", "POST", "/", "", "", "x"); e != 51 {
		t.Errorf("no room = %d", e)
	}
	g.box = nil
	if e := g.told("h.example", "POST", "/", "", "", "x"); e != eNOTSUP {
		t.Errorf("outside of a call = %d", e)
	}
	g.process = nil
	if _, err := g.send(t.Context(), "h.example", "POST", "/", "", "", ""); !errors.Is(err, wasi.ErrNoProcess) {
		t.Errorf("got %v", err)
	}
}

// What ends the call does not return, and every further call ends it again.
func TestStops(t *testing.T) {
	over := errors.New("over")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for name, c := range map[string]struct {
		ctx   context.Context
		set   func(*guest)
		match func(error) bool
	}{
		"closed": {t.Context(), func(g *guest) { g.serve(known{}, capabilities.Grant{}, 9) }, func(err error) bool {
			return errors.Is(err, capabilities.ErrViolation)
		}},
		"sealed": {t.Context(), func(g *guest) { g.box = outbox.Sealed() }, func(err error) bool {
			_, ok := errors.AsType[*outbox.SealedError](err)
			return ok
		}},
		"budget": {t.Context(), func(g *guest) { g.serve(known{}, open, 9) }, func(err error) bool {
			_, ok := errors.AsType[*outbox.LimitError](err)
			return ok
		}},
		"broken store": {t.Context(), func(g *guest) { g.serve(known{errBroken}, open, 1<<20) }, func(err error) bool {
			h, ok := errors.AsType[*wasi.HostError](err)
			return ok && errors.Is(h, errBroken)
		}},
		"ended": {ended, func(*guest) {}, func(err error) bool { return errors.Is(err, over) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, forwarder(false), open)
			c.set(g)
			for _, ctx := range []context.Context{c.ctx, t.Context()} {
				if _, err := g.send(ctx, "h.example", "POST", "/", "", "", "x"); !c.match(err) {
					t.Errorf("got %v", err)
				}
				g.serve(known{}, open, 1<<20) // a stopped guest stays stopped
			}
			if !c.match(g.process.Stop()) || len(g.box.Effects()) != 0 {
				t.Errorf("stopped by %v, sent %v", g.process.Stop(), g.box.Effects())
			}
		})
	}
}

func TestFaults(t *testing.T) {
	g := newGuest(t, forwarder(false), open)
	for i := 0; i < len(sendParams()); i += 2 {
		args := make([]uint64, len(sendParams()))
		args[i], args[i+1] = 32<<16-2, 3
		if e, err := g.try(t.Context(), args...); e != eFAULT || err != nil {
			t.Errorf("field %d = %d, %v", i/2, e, err)
		}
	}
	n := newGuest(t, forwarder(true), open)
	if e, err := n.try(t.Context(), make([]uint64, len(sendParams()))...); e != eFAULT || err != nil {
		t.Errorf("without memory = %d, %v", e, err)
	}
}

// Whatever numbers a guest passes, it gets an answer.
func TestAnyArguments(t *testing.T) {
	g := newGuest(t, forwarder(false), open)
	word := rapid.OneOf(rapid.Uint64Range(0, 16), rapid.Uint64Range(32<<16-9, 32<<16+9), rapid.Uint64())
	rapid.Check(t, func(rt *rapid.T) {
		args := rapid.SliceOfN(word, 12, 12).Draw(rt, "arguments")
		if _, err := g.try(t.Context(), args...); err != nil {
			rt.Fatalf("%v: %v", args, err)
		}
	})
}

func TestSignature(t *testing.T) {
	if p, r, ok := Signature("send"); !ok || !slices.Equal(p, sendParams()) || len(r) != 1 {
		t.Errorf("send: %v, %v", p, r)
	}
	if _, _, ok := Signature("none"); ok {
		t.Error("there is a function of no name")
	}
}
