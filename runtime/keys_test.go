package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// Functions that a guest of these tests imports, after those of WASI.
const (
	kvPut = imports + iota
	kvIncrement
	kvGet
	boxSend
)

var storeImports = []w.Func{
	{Import: "sandboxd_kv", Name: "put", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "sandboxd_kv", Name: "increment", Params: []byte{w.I32, w.I32, w.I64, w.I32}, Results: []byte{w.I32}},
	{Import: "sandboxd_kv", Name: "get", Params: []byte{w.I32, w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "sandboxd_outbox", Name: "send", Params: []byte{
		w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32, w.I32,
	}, Results: []byte{w.I32}},
}

// The key "k", the value "7" and a host in the memory of such a guest.
const (
	atKey    = 3000
	atValue  = 3100
	atHost   = 3200
	atMethod = 3300
	host     = "mail.example.com"
)

var (
	putKey       = w.Seq(w.I32Const(atKey), w.I32Const(1), w.I32Const(atValue), w.I32Const(1), w.Call(kvPut), w.Drop)
	incrementKey = w.Seq(w.I32Const(atKey), w.I32Const(1), w.I64Const(1), w.I32Const(atResult), w.Call(kvIncrement), w.Drop)
	getKey       = w.Seq(w.I32Const(atKey), w.I32Const(1), w.I32Const(4000), w.I32Const(100), w.I32Const(atResult), w.Call(kvGet), w.Drop)
	sendOne      = w.Seq(
		w.I32Const(atHost), w.I32Const(int32(len(host))), w.I32Const(atMethod), w.I32Const(4), w.I32Const(atMethod+4), w.I32Const(1),
		w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(atValue), w.I32Const(1), w.Call(boxSend), w.Drop)
)

// keyed returns a package whose one tool does what body says, and may use keys and
// send to host.
func keyed(body []byte, claim capabilities.Claim) *tool.Package {
	m := w.Module{
		Funcs:  append(append(append([]w.Func{}, wasiImports...), storeImports...), w.Func{Name: "_start", Body: w.Seq(body, write(1, 2))}),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atText: []byte("ok"), atKey: []byte("k"), atValue: []byte("7"), atHost: []byte(host), atMethod: []byte("POST/")},
	}
	p := pack(m.Encode(), tool.Command, claim)
	p.Manifest.Requests = tool.Requests{KV: true, Outbox: []string{host}}
	return p
}

var sends1 = Binding{Outbox: []string{host}}

// counting is a store that counts commits, and fails as told.
type counting struct {
	store.Store
	mu      sync.Mutex
	commits int
	fault   error // of the next commits
	blind   error // of reads
}

func (c *counting) Commit(ctx context.Context, m *store.Commit) (store.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits++
	if c.fault != nil {
		return 0, c.fault
	}
	return c.Store.Commit(ctx, m)
}

func (c *counting) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if c.blind != nil {
		return nil, c.blind
	}
	return c.Store.Snapshot(ctx)
}

func engineOver(t *testing.T, s store.Store) *Engine {
	t.Helper()
	e, err := New(t.Context(), Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// value returns what key "k" of the package is, empty for none.
func value(t *testing.T, s store.Store, principal string) string {
	t.Helper()
	now, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, _, _, err := kv.Stored(now, store.Space{Principal: principal, Package: "p", Area: kv.Area}).Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func TestKeysByClaim(t *testing.T) {
	additive := capabilities.Claim{Destructive: capabilities.False, OpenWorld: capabilities.False}
	idempotent := capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
	for name, c := range map[string]struct {
		body   []byte
		claim  capabilities.Claim
		before string
		want   Outcome
		hint   capabilities.Hint
		after  string
	}{
		"read-only reads":           {getKey, readOnly, "1", OK, 0, "1"},
		"read-only puts":            {putKey, readOnly, "", Violation, capabilities.ReadOnlyHint, ""},
		"read-only sends":           {sendOne, readOnly, "", Violation, capabilities.ReadOnlyHint, ""},
		"additive puts a new key":   {putKey, additive, "", OK, 0, "7"},
		"additive puts the same":    {putKey, additive, "7", OK, 0, "7"},
		"additive overwrites":       {putKey, additive, "1", Violation, capabilities.DestructiveHint, "1"},
		"additive increments":       {incrementKey, additive, "1", OK, 0, "2"},
		"idempotent puts":           {putKey, idempotent, "1", OK, 0, "7"},
		"idempotent increments":     {incrementKey, idempotent, "1", Violation, capabilities.IdempotentHint, "1"},
		"closed sends":              {sendOne, writer, "", Violation, capabilities.OpenWorldHint, ""},
		"idempotent sends":          {sendOne, capabilities.Claim{Idempotent: capabilities.True}, "", OK, 0, ""},
		"puts, then does not claim": {w.Seq(putKey, exit(1)), writer, "1", ToolError, 0, "1"},
	} {
		s := memstore.New()
		e := engineOver(t, s)
		if c.before != "" {
			seed := mustLoad(t, e, keyed(w.Seq(setTo(c.before)), writer), sends1)
			if r := seed.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
				t.Fatalf("%s: seed: %s, %v", name, r.Outcome, r.Err)
			}
			if err := seed.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := mustLoad(t, e, keyed(c.body, c.claim), sends1)
		r := p.Call(t.Context(), Request{Tool: "t"})
		if r.Outcome != c.want {
			t.Errorf("%s: %s (%v), want %s", name, r.Outcome, r.Err, c.want)
		}
		if c.want == Violation && (r.Violation == nil || r.Violation.Hint != c.hint) {
			t.Errorf("%s: violation %+v, want %s", name, r.Violation, c.hint)
		}
		if got := value(t, s, LocalPrincipal); got != c.after {
			t.Errorf("%s: left %q, want %q", name, got, c.after)
		}
	}
}

// setTo puts a value of one digit.
func setTo(v string) []byte {
	return w.Seq(w.I32Const(atValue), w.I32Const(int32(v[0])), []byte{0x3a, 0, 0}, putKey) // i32.store8
}

// TestKeysWithoutStore: a lie is one without a store, too.
func TestKeysWithoutStore(t *testing.T) {
	e := engineOver(t, nil)
	lie := keyed(putKey, readOnly)
	lie.Manifest.Requests = tool.Requests{}
	if r := mustLoad(t, e, lie, Binding{}).Call(t.Context(), Request{Tool: "t"}); r.Outcome != Violation {
		t.Errorf("%s (%v)", r.Outcome, r.Err)
	}
	if _, err := e.Load(t.Context(), keyed(putKey, writer), Binding{}); !errors.Is(err, ErrNoStore) {
		t.Errorf("keys without a store: %v", err)
	}
	none := keyed(putKey, writer)
	none.Manifest.Name, none.Manifest.Requests = "none", tool.Requests{}
	if r := mustLoad(t, e, none, Binding{}).Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK || len(r.Denials) != 1 {
		t.Errorf("not requested: %s (%v), denials %v", r.Outcome, r.Err, r.Denials)
	}
}

// TestKeysBeforeRequest: what start-up code does to keys and messages is an error
// of the package, never an effect.
func TestKeysBeforeRequest(t *testing.T) {
	for name, init := range map[string][]byte{"get": getKey, "put": putKey, "send": sendOne} {
		p := keyed(nil, writer)
		m := w.Module{
			Funcs: append(append(append([]w.Func{}, wasiImports...), storeImports...),
				w.Func{Name: "_initialize", Body: init},
				w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(1024)},
				w.Func{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.I64Const(0)},
			),
			Memory: [2]uint32{1, 0},
			Data:   map[uint32][]byte{atKey: []byte("k"), atHost: []byte(host), atMethod: []byte("POST/")},
		}
		p.Module, p.Manifest.ABI = m.Encode(), tool.Reactor
		_, err := engineOver(t, memstore.New()).Load(t.Context(), p, sends1)
		_, keys := errors.AsType[*kv.SealedError](err)
		_, messages := errors.AsType[*outbox.SealedError](err)
		if !keys && !messages {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadingCostsNoCommit(t *testing.T) {
	s := &counting{Store: memstore.New()}
	p := mustLoad(t, engineOver(t, s), keyed(getKey, readOnly), sends1)
	before := s.commits // the engine names the store once
	for range 3 {
		if r := p.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK {
			t.Fatalf("%s (%v)", r.Outcome, r.Err)
		}
	}
	if n := s.commits - before; n != 0 {
		t.Errorf("%d commits", n)
	}
}

// TestStoreFaults: a store that does not answer is a fault of the host, and leaves
// nothing.
func TestStoreFaults(t *testing.T) {
	broken := errors.New("disk is broken")
	s := &counting{Store: memstore.New()}
	p := mustLoad(t, engineOver(t, s), keyed(incrementKey, writer), sends1)
	call := func() *Result { return p.Call(t.Context(), Request{Tool: "t"}) }
	s.fault = broken
	if r := call(); r.Outcome != HostError || r.Committed || !errors.Is(r.Err, broken) {
		t.Errorf("commit: %s, committed %v, %v", r.Outcome, r.Committed, r.Err)
	}
	s.fault = store.ErrUnknown
	if r := call(); r.Outcome != HostError || r.Committed || !r.Partial {
		t.Errorf("no answer: %s, committed %v, partial %v, %v", r.Outcome, r.Committed, r.Partial, r.Err)
	}
	s.fault, s.blind = nil, broken
	if r := call(); r.Outcome != HostError || !errors.Is(r.Err, broken) {
		t.Errorf("read: %s, %v", r.Outcome, r.Err)
	}
	s.blind = nil
	if r := call(); r.Outcome != OK || value(t, s, LocalPrincipal) != "1" {
		t.Errorf("afterwards: %s, %v, left %q", r.Outcome, r.Err, value(t, s, LocalPrincipal))
	}
	s.fault = store.ErrConflict
	s.commits = 0
	if r := call(); r.Outcome != Conflict || s.commits != 1+maxReruns {
		t.Errorf("conflict: %s after %d commits", r.Outcome, s.commits)
	}
}

func TestKeyLimits(t *testing.T) {
	p := keyed(putKey, writer)
	p.Manifest.Limits.Files = 0
	r := mustLoad(t, engineOver(t, memstore.New()), p, sends1).Call(t.Context(), Request{Tool: "t"})
	if limit, ok := errors.AsType[*LimitError](r.Err); r.Outcome != Limit || !ok || limit.Limit != "keys" {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := memstore.New()
	source := keyed(incrementKey, writer)
	source.Manifest.Tools[0].InputSchema = []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	p := mustLoad(t, engineOver(t, s), source, sends1)
	call := func(key, arguments string) *Result {
		return p.Call(t.Context(), Request{Tool: "t", IdempotencyKey: key, Arguments: []byte(arguments)})
	}
	first := call("a", `{"n":1}`)
	if first.Outcome != OK || first.Remembered {
		t.Fatalf("%s, %v", first.Outcome, first.Err)
	}
	if again := call("a", `{ "n": 1 }`); again.Outcome != OK || !again.Remembered || textOf(t, again) != textOf(t, first) {
		t.Errorf("again: %s, remembered %v, %v", again.Outcome, again.Remembered, again.Err)
	}
	if other := call("a", `{"n":2}`); other.Outcome != Refused || !errors.Is(other.Err, ErrIdempotencyKey) {
		t.Errorf("other arguments: %s, %v", other.Outcome, other.Err)
	}
	if got := value(t, s, LocalPrincipal); got != "1" {
		t.Errorf("left %q", got)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r := call("b", `{"n":1}`); r.Outcome != OK {
				t.Errorf("duplicate: %s, %v", r.Outcome, r.Err)
			}
		})
	}
	all.Wait()
	if got := value(t, s, LocalPrincipal); got != "2" {
		t.Errorf("8 duplicates left %q", got)
	}
	if r := p.Call(t.Context(), Request{Tool: "t", Principal: "other", IdempotencyKey: "a"}); r.Remembered || r.Outcome != OK {
		t.Errorf("another principal: %s, remembered %v", r.Outcome, r.Remembered)
	}
	if got := value(t, s, "other"); got != "1" {
		t.Errorf("another principal's is %q", got)
	}
}

// TestOnlyCommitsAreRemembered: what left nothing may be tried again.
func TestOnlyCommitsAreRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		body  []byte
		claim capabilities.Claim
		want  Outcome
	}{
		"violation": {incrementKey, capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}, Violation},
		"error":     {w.Seq(incrementKey, exit(1)), writer, ToolError},
	} {
		p := mustLoad(t, engineOver(t, memstore.New()), keyed(c.body, c.claim), sends1)
		for range 2 {
			if r := p.Call(t.Context(), Request{Tool: "t", IdempotencyKey: "a"}); r.Outcome != c.want || r.Remembered {
				t.Errorf("%s: %s (%v), remembered %v", name, r.Outcome, r.Err, r.Remembered)
			}
		}
	}
}
