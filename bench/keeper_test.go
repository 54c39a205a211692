package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// sort is what the calls of a keeper are.
type sort int

const (
	reading   sort = iota // get of two keys, by a read-only tool
	writing               // put of two keys
	repeating             // the same by a tool that claims to be idempotent: it is run a second time
)

// keeper is a guest, assembled by hand, that gets or puts the two keys of its
// request. The request lies where the host is told to write it, and its texts are
// of fixed lengths: the guest need not look for them.
type keeper struct {
	sort  sort
	pkg   *runtime.Package
	store *tapped
	took  sync.Map // of commits, by call
}

// recordSize is about what a record of the journal takes for such a call.
const recordSize = 600

// tapped shows the commit of the last call.
type tapped struct {
	store.Store
	last atomic.Pointer[store.Commit]
}

func (s *tapped) Commit(ctx context.Context, c *store.Commit) (store.Version, error) {
	s.last.Store(c)
	return s.Store.Commit(ctx, c)
}

func arguments(keys [2]int, n int64) json.RawMessage {
	return fmt.Appendf(nil, `{"a":"%s","b":"%s","value":"%s"}`, keyName(keys[0]), keyName(keys[1]), value(n))
}

func keeperModule(s sort) []byte {
	const request, size, buf, answer = 4096, 2040, 16384, 1024
	delivered := fmt.Appendf(nil, `{"tool":"keep","arguments":%s`, arguments([2]int{0, 0}, 0))
	at := func(field string) int32 {
		return int32(request + bytes.Index(delivered, []byte(`"`+field+`":"`)) + len(field) + 4)
	}
	key := func(field string) []byte { return w.Seq(w.I32Const(at(field)), w.I32Const(int32(len(keyName(0))))) }
	var body []byte
	for _, field := range []string{"a", "b"} {
		if s == reading {
			body = append(body, w.Seq(key(field), w.I32Const(buf), w.I32Const(1024), w.I32Const(size), w.Call(0))...)
		} else {
			body = append(body, w.Seq(key(field), w.I32Const(at("value")), w.I32Const(valueSize), w.Call(1))...)
		}
		body = append(body, w.Call(2)...) // an error number other than 0 is the end
	}
	m := w.Module{
		Funcs: []w.Func{
			{Import: "sandboxd_kv", Name: "get", Params: slices.Repeat([]byte{w.I32}, 5), Results: []byte{w.I32}},
			{Import: "sandboxd_kv", Name: "put", Params: slices.Repeat([]byte{w.I32}, 4), Results: []byte{w.I32}},
			{Params: []byte{w.I32}, Body: w.Seq(w.LocalGet(0), []byte{0x04, 0x40}, w.Unreachable, []byte{0x0b})},
			{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(request)},
			{Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: append(body, w.I64Const(answer<<32|4)...)},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{answer: []byte("kept")},
	}
	return m.Encode()
}

func newKeeper(tb testing.TB, s store.Store, what sort) *keeper {
	tb.Helper()
	k := &keeper{sort: what, store: &tapped{Store: s}}
	record := bytes.Repeat([]byte("r"), recordSize)
	e, err := runtime.New(tb.Context(), runtime.Options{Store: k.store, Observer: runtime.Observer{
		Record: func(c runtime.CallInfo, _ *runtime.Result) []store.Record {
			return []store.Record{{Time: c.Start, Data: record}}
		},
		Commit: func(c runtime.CallInfo, took time.Duration) { k.took.Store(c.ID, took) },
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	truth := map[bool]capabilities.Tri{true: capabilities.True, false: capabilities.False}
	k.pkg, err = e.Load(tb.Context(), &tool.Package{Module: keeperModule(what), Manifest: tool.Manifest{
		Name: keySpace.Package, ABI: tool.Reactor, Requests: tool.Requests{KV: true},
		Tools: []tool.Definition{{
			Name:        "keep",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"value":{"type":"string"}}}`),
			Claim: capabilities.Claim{
				ReadOnly: truth[what == reading], Destructive: capabilities.True, Idempotent: truth[what == repeating], OpenWorld: capabilities.False,
			},
		}},
		Limits: tool.Limits{Memory: 1 << 20, Timeout: 5 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
	}}, runtime.Binding{})
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// call makes one call, under an idempotency key where it has one.
func (k *keeper) call(ctx context.Context, caller int, n int64, key string) (*runtime.Result, error) {
	r := k.pkg.Call(ctx, runtime.Request{Tool: "keep", Arguments: arguments(pair(caller, n), n), IdempotencyKey: key})
	if r.Outcome != runtime.OK || !r.Committed {
		return nil, fmt.Errorf("outcome %s, committed %v: %w", r.Outcome, r.Committed, r.Err)
	}
	return r, nil
}

// way measures the commits of calls, as the engine reports them.
func (k *keeper) way() way {
	return way{"a call's commit in the engine", func(ctx context.Context, caller int, n int64) (time.Duration, error) {
		r, err := k.call(ctx, caller, n, fmt.Sprint("key ", n))
		if err != nil {
			return 0, err
		}
		took, ok := k.took.LoadAndDelete(r.CallID)
		if !ok {
			return 0, fmt.Errorf("no commit of call %s was reported", r.CallID)
		}
		return took.(time.Duration), nil
	}}
}

// more is what the engine commits beside the two keys.
type more struct {
	list   []store.Write
	record []byte
}

// more makes a call and returns that of its commit.
func (k *keeper) more(tb testing.TB) *more {
	tb.Helper()
	if _, err := k.call(tb.Context(), 0, 1<<40, "first"); err != nil {
		tb.Fatal(err)
	}
	c, m := k.store.last.Load(), &more{}
	keys := 0
	for _, w := range c.Writes {
		switch {
		case w.Area == keySpace.Area && string(w.Value) == string(value(1<<40)):
			keys++
		case w.Area == keySpace.Area || len(w.Blobs) > 0 || w.Delete:
			tb.Fatalf("the commit has a write of %s %q that is not made by hand", w.Area, w.Name)
		default:
			m.list = append(m.list, w)
		}
	}
	if keys != 2 || len(c.Records) != 1 || len(m.list) < 2 {
		tb.Fatalf("the commit has %d keys, %d more writes, %d records", keys, len(m.list), len(c.Records))
	}
	m.record = c.Records[0].Data
	return m
}

func (m *more) areas() (list []string) {
	for _, w := range m.list {
		if !slices.Contains(list, w.Area) {
			list = append(list, w.Area)
		}
	}
	return list
}

// writes returns the writes as they would be for another call: under other names.
func (m *more) writes(n int64) []store.Write {
	list := slices.Clone(m.list)
	for i := range list {
		list[i].Name = fmt.Sprintf("%0*d", len(list[i].Name), n)
	}
	return list
}
