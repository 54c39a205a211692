package hostkv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// Where a test keeps things in the memory of the guest.
const (
	atKey    = 16
	atTo     = 2048
	atResult = 4096
	atBuf    = 8192
	wasmPage = 65536
)

// guest is an instance that forwards all functions.
type guest struct {
	api.Module
	t       testing.TB
	process *wasi.Process
	keys    *kv.Keys
	overlay *kv.Overlay
}

func forwarder(noMemory bool) []byte {
	m := wasmtest.Module{Memory: [2]uint32{32, 32}, NoMemory: noMemory}
	for _, forward := range []bool{false, true} {
		for i, f := range functions() {
			g := wasmtest.Func{Import: ModuleName, Name: f.name, Params: f.params, Results: []byte{wasmtest.I32}}
			if forward {
				g.Import = ""
				for p := range f.params {
					g.Body = append(g.Body, wasmtest.LocalGet(p)...)
				}
				g.Body = append(g.Body, wasmtest.Call(i)...)
			}
			m.Funcs = append(m.Funcs, g)
		}
	}
	return m.Encode()
}

var granted = capabilities.Grant{KV: capabilities.WriteAccess}

func newGuest(t testing.TB, module []byte, g capabilities.Grant) *guest {
	t.Helper()
	r := wazero.NewRuntime(t.Context())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	x := &guest{t: t, process: wasi.NewProcess(wasi.Options{})}
	snap, err := memstore.New().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x.serve(kv.Stored(snap, store.Space{}), g)
	if _, err := Instantiate(t.Context(), r, func(api.Module) (*wasi.Process, *kv.Keys) { return x.process, x.keys }); err != nil {
		t.Fatal(err)
	}
	if x.Module, err = r.Instantiate(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	return x
}

func (g *guest) serve(b kv.Base, grant capabilities.Grant) {
	g.overlay = kv.NewOverlay(b, kv.Options{
		Budget: &kv.Budget{Bytes: 8 << 20, Keys: 1000}, Quota: store.Usage{Keys: 1000, Bytes: 16 << 20},
	})
	g.keys = kv.New(g.overlay, capabilities.NewLedger(grant, capabilities.Notify{}))
}

// put lays a text into the memory and returns its address and length.
func (g *guest) put(at uint32, s string) (ptr, n uint64) {
	g.t.Helper()
	if !g.Memory().WriteString(at, s) {
		g.t.Fatal("out of memory")
	}
	return uint64(at), uint64(len(s))
}

func (g *guest) try(ctx context.Context, name string, args ...uint64) (errno, error) {
	r, err := g.ExportedFunction(name).Call(ctx, args...)
	if err != nil {
		return 0, err
	}
	return errno(r[0]), nil
}

func (g *guest) call(name string, args ...uint64) errno {
	g.t.Helper()
	e, err := g.try(g.t.Context(), name, args...)
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func (g *guest) store(name, key, value string) errno {
	g.t.Helper()
	kp, kn := g.put(atKey, key)
	vp, vn := g.put(atBuf, value)
	return g.call(name, kp, kn, vp, vn)
}

// get reads with a buffer of so many bytes.
func (g *guest) get(key string, size uint64) (string, uint32, errno) {
	g.t.Helper()
	kp, kn := g.put(atKey, key)
	e := g.call("get", kp, kn, atBuf, size, atResult)
	n, _ := g.Memory().ReadUint32Le(atResult)
	var value []byte
	if e == success {
		value, _ = g.Memory().Read(atBuf, n)
	}
	return string(value), n, e
}

func (g *guest) scan(from, to string, limit, size uint64) (entries []string, r [3]uint32, e errno) {
	g.t.Helper()
	fp, fn := g.put(atKey, from)
	tp, tn := g.put(atTo, to)
	e = g.call("scan", fp, fn, tp, tn, limit, atBuf, size, atResult)
	for i := range r {
		r[i], _ = g.Memory().ReadUint32Le(atResult + 4*uint32(i))
	}
	if e != success {
		return nil, r, e
	}
	b, _ := g.Memory().Read(atBuf, r[1])
	for len(b) > 0 {
		k, v := le.Uint32(b), le.Uint32(b[4:])
		entries = append(entries, string(b[8:8+k])+"="+string(b[8+k:8+k+v]))
		b = b[8+k+v:]
	}
	return entries, r, e
}

func TestValues(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	if _, _, e := g.get("k", 9); e != eNOENT {
		t.Errorf("absent = %d", e)
	}
	for _, c := range [][3]string{{"put", "k\x00\xff", "value"}, {"append", "k\x00\xff", "s"}, {"put", "empty", ""}} {
		if e := g.store(c[0], c[1], c[2]); e != success {
			t.Errorf("%q = %d", c, e)
		}
	}
	if v, n, e := g.get("k\x00\xff", 6); v != "values" || n != 6 || e != success {
		t.Errorf("got %q, %d, %d", v, n, e)
	}
	if v, n, e := g.get("empty", 0); v != "" || n != 0 || e != success {
		t.Errorf("got %q, %d, %d", v, n, e)
	}
	kp, kn := g.put(atKey, "k\x00\xff")
	if e := g.call("delete", kp, kn); e != success {
		t.Errorf("delete = %d", e)
	}
	if e := g.call("delete", kp, kn); e != success {
		t.Errorf("delete again = %d", e)
	}
	if _, _, e := g.get("k\x00\xff", 9); e != eNOENT {
		t.Errorf("deleted = %d", e)
	}
}

// A buffer that is too small is told what it takes, and stays as it is.
func TestSmallBuffers(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	g.store("put", "a", "12345")
	g.store("put", "b", "123")
	g.Memory().Write(atBuf, []byte("untouched....."))
	if _, n, e := g.get("a", 4); e != eRANGE || n != 5 {
		t.Errorf("get: %d, %d", n, e)
	}
	if _, r, e := g.scan("", "", 9, 13); e != eRANGE || r != [3]uint32{0, 14, 1} {
		t.Errorf("scan: %v, %d", r, e)
	}
	if b, _ := g.Memory().Read(atBuf, 14); string(b) != "untouched....." {
		t.Errorf("buffer %q", b)
	}
}

func TestScan(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	for _, k := range []string{"a", "b", "c", "d"} {
		g.store("put", k, "v"+k)
	}
	for _, c := range []struct {
		from, to    string
		limit, size uint64
		want        []string
		more        uint32
	}{
		{"", "", 9, 1000, []string{"a=va", "b=vb", "c=vc", "d=vd"}, 0},
		{"b", "d", 9, 1000, []string{"b=vb", "c=vc"}, 0},
		{"", "", 2, 1000, []string{"a=va", "b=vb"}, 0},
		{"", "", 9, 22, []string{"a=va", "b=vb"}, 1},
		{"", "", 2, 22, []string{"a=va", "b=vb"}, 0},
		{"c", "", 9, 22, []string{"c=vc", "d=vd"}, 0},
		{"x", "", 9, 0, nil, 0},
		{"d", "a", 9, 0, nil, 0},
		{"", "", 0, 0, nil, 0},
		{"", "", 1<<32 - 1, 1000, []string{"a=va", "b=vb", "c=vc", "d=vd"}, 0},
	} {
		got, r, e := g.scan(c.from, c.to, c.limit, c.size)
		if e != success || !slices.Equal(got, c.want) || r != [3]uint32{uint32(len(c.want)), uint32(11 * len(c.want)), c.more} {
			t.Errorf("%+v: %q, %v, %d", c, got, r, e)
		}
	}
}

// An entry that did not fit was seen: that there is one, and how long it is.
func TestScanRestsOnWhatDidNotFit(t *testing.T) {
	s := memstore.New()
	commit := func(id, key, value string) {
		_, err := s.Commit(t.Context(), &store.Commit{ID: id, Writes: []store.Write{{Key: store.Key{Name: key}, Value: []byte(value)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	commit("1", "a", "va")
	commit("2", "b", "vb")
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, forwarder(false), granted)
	g.serve(kv.Stored(snap, store.Space{}), granted)
	if _, r, e := g.scan("", "", 9, 11); e != success || r[2] != 1 {
		t.Fatalf("got %v, %d", r, e)
	}
	commit("3", "b", "other")
	c, err := g.overlay.Change()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), &store.Commit{ID: "4", Ranges: c.Ranges}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

func TestIncrement(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	g.store("put", "text", "x")
	g.store("put", "max", "9223372036854775807")
	for _, c := range []struct {
		key  string
		by   int64
		sum  int64
		want errno
	}{
		{"n", 5, 5, success},
		{"n", -7, -2, success},
		{"n", 0, -2, success},
		{"text", 1, 0, eINVAL},
		{"max", 1, 0, eOVERFLOW},
		{"", 1, 0, eINVAL},
	} {
		g.Memory().WriteUint64Le(atResult, 0)
		kp, kn := g.put(atKey, c.key)
		e := g.call("increment", kp, kn, uint64(c.by), atResult)
		if n, _ := g.Memory().ReadUint64Le(atResult); e != c.want || int64(n) != c.sum {
			t.Errorf("%+v: %d, %d", c, int64(n), e)
		}
	}
}

func TestErrors(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	long := strings.Repeat("k", kv.MaxKey+1)
	tooBig := []uint64{atKey, 1, atBuf, kv.MaxValue + 1}
	for name, c := range map[string][2]errno{
		"empty key":   {g.store("put", "", "v"), 28},
		"long key":    {g.store("put", long, "v"), 37},
		"longest key": {g.store("put", long[1:], "v"), success},
		"put":         {g.call("put", tooBig...), 22},
		"append":      {g.call("append", tooBig...), 22},
	} {
		if c[0] != c[1] {
			t.Errorf("%s = %d, want %d", name, c[0], c[1])
		}
	}
	if _, _, e := g.scan(long+"x", "", 9, 9); e != 37 {
		t.Errorf("scan = %d", e)
	}
	denied := newGuest(t, forwarder(false), capabilities.Grant{})
	if e := denied.store("put", "k", "v"); e != 2 {
		t.Errorf("denied = %d", e)
	}
	if e := newGuest(t, forwarder(false), capabilities.Grant{KV: capabilities.ReadAccess}).store("put", "k", "v"); e != 69 {
		t.Errorf("for reading = %d", e)
	}
	denied.keys = nil
	if e := denied.store("put", "k", "v"); e != eNOTSUP {
		t.Errorf("outside of a call = %d", e)
	}
	denied.process = nil
	if _, err := denied.try(t.Context(), "delete", 0, 0); !errors.Is(err, wasi.ErrNoProcess) {
		t.Errorf("got %v", err)
	}
}

// Addresses outside of the memory change nothing, not even in part.
func TestFaults(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	g.store("put", "k", "1")
	kp, kn := g.put(atKey, "k")
	const out = 32*wasmPage - 2 // two bytes before the end
	for name, args := range map[string][]uint64{
		"get key":          {out, 3, atBuf, 9, atResult},
		"get buffer":       {kp, kn, out, 3, atResult},
		"get result":       {kp, kn, atBuf, 9, out},
		"put key":          {out, 3, atBuf, 1},
		"put value":        {kp, kn, out, 3},
		"append data":      {kp, kn, out, 3},
		"delete key":       {out, 3},
		"delete wraps":     {1<<32 - 1, 2},
		"increment key":    {out, 3, 1, atResult},
		"increment result": {kp, kn, 1, out},
		"scan from":        {out, 3, atTo, 0, 9, atBuf, 99, atResult},
		"scan to":          {kp, kn, out, 3, 9, atBuf, 99, atResult},
		"scan buffer":      {kp, kn, atTo, 0, 9, out, 3, atResult},
		"scan result":      {kp, kn, atTo, 0, 9, atBuf, 99, out},
	} {
		f, _, _ := strings.Cut(name, " ")
		if e := g.call(f, args...); e != eFAULT {
			t.Errorf("%s = %d", name, e)
		}
	}
	if v, _, e := g.get("k", 9); v != "1" || e != success || len(g.overlay.Left()) != 1 {
		t.Errorf("got %q, %d, left %v", v, e, g.overlay.Left())
	}
	if e := newGuest(t, forwarder(true), granted).call("delete", 0, 0); e != eFAULT {
		t.Errorf("without memory = %d", e)
	}
}

// What ends the call does not return, and every further call ends it again.
func TestStops(t *testing.T) {
	stops := func(name string, g *guest, match func(error) bool) {
		t.Helper()
		kp, kn := g.put(atKey, "k")
		for _, f := range []string{"put", "append"} {
			if _, err := g.try(t.Context(), f, kp, kn, kp, kn); !match(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !match(g.process.Stop()) {
			t.Errorf("%s: stopped by %v", name, g.process.Stop())
		}
	}
	readOnly := capabilities.Grant{KV: capabilities.ReadAccess, Claim: capabilities.Effective{ReadOnly: true}}
	stops("violation", newGuest(t, forwarder(false), readOnly), func(err error) bool { return errors.Is(err, capabilities.ErrViolation) })

	g := newGuest(t, forwarder(false), granted)
	g.keys = kv.Sealed()
	stops("sealed", g, func(err error) bool { _, ok := errors.AsType[*kv.SealedError](err); return ok })

	g = newGuest(t, forwarder(false), granted)
	g.overlay = kv.NewOverlay(broken{}, kv.Options{Budget: &kv.Budget{}})
	g.keys = kv.New(g.overlay, capabilities.NewLedger(granted, capabilities.Notify{}))
	stops("broken store", g, func(err error) bool {
		h, ok := errors.AsType[*wasi.HostError](err)
		return ok && errors.Is(h, errBroken)
	})

	g = newGuest(t, forwarder(false), granted)
	g.keys = kv.New(kv.NewOverlay(kv.NewOverlay(empty{}, kv.Options{}).Result(), kv.Options{Quota: store.Usage{Keys: 9, Bytes: 99}}),
		capabilities.NewLedger(granted, capabilities.Notify{}))
	stops("budget", g, func(err error) bool { _, ok := errors.AsType[*kv.LimitError](err); return ok })
}

var errBroken = errors.New("broken")

type broken struct{ empty }

func (broken) Get(context.Context, string) ([]byte, store.Version, bool, error) {
	return nil, 0, false, errBroken
}

type empty struct{}

func (empty) Get(context.Context, string) ([]byte, store.Version, bool, error) {
	return nil, 0, false, nil
}

func (empty) Scan(context.Context, string, string, int) ([]kv.Entry, error) { return nil, nil }

// A guest that only asks for keys stops when its context ends, also where the
// store is what waits for it.
func TestEndedContextStops(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("over")
	cancel(cause)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if _, err := g.try(ctx, "delete", 0, 0); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	g = newGuest(t, forwarder(false), granted)
	ctx, cancel = context.WithCancelCause(t.Context())
	g.overlay = kv.NewOverlay(waiting{cancel: func() { cancel(cause) }}, kv.Options{})
	g.keys = kv.New(g.overlay, capabilities.NewLedger(granted, capabilities.Notify{}))
	kp, kn := g.put(atKey, "k")
	if _, err := g.try(ctx, "delete", kp, kn); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// waiting is a store that answers when the call is over.
type waiting struct {
	empty
	cancel func()
}

func (w waiting) Get(ctx context.Context, _ string) ([]byte, store.Version, bool, error) {
	w.cancel()
	return nil, 0, false, ctx.Err()
}

// Whatever numbers a guest passes, it gets an answer or is stopped by its own
// doing.
func TestAnyArguments(t *testing.T) {
	g := newGuest(t, forwarder(false), granted)
	word := rapid.OneOf(rapid.Uint64Range(0, 16), rapid.Uint64Range(32*wasmPage-9, 32*wasmPage+9), rapid.Uint64())
	snap, err := memstore.New().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		g.serve(kv.Stored(snap, store.Space{}), granted)
		g.process = wasi.NewProcess(wasi.Options{})
		for range rapid.IntRange(1, 6).Draw(rt, "calls") {
			f := rapid.SampledFrom(functions()).Draw(rt, "function")
			args := rapid.SliceOfN(word, len(f.params), len(f.params)).Draw(rt, "arguments")
			if _, err := g.try(t.Context(), f.name, args...); err != nil {
				if _, ok := errors.AsType[*kv.LimitError](err); !ok {
					rt.Fatalf("%s%v: %v", f.name, args, err)
				}
				return
			}
		}
	})
}

func TestSignature(t *testing.T) {
	for _, f := range functions() {
		p, r, ok := Signature(f.name)
		if !ok || !slices.Equal(p, f.params) || !slices.Equal(r, []api.ValueType{i32}) {
			t.Errorf("%s: %v, %v", f.name, p, r)
		}
	}
	if _, _, ok := Signature("none"); ok {
		t.Error("there is a function of no name")
	}
}
