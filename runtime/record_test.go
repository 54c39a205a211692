package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// answersInError returns a package like that of keyed whose tool then answers that
// it did not succeed.
func answersInError(body []byte) *tool.Package {
	const answer, at = `{"content":[],"isError":true}`, 5000
	p := keyed(nil, writer)
	p.Module = w.Module{
		Funcs: append(append(append([]w.Func{}, wasiImports...), storeImports...),
			w.Func{Name: "sandboxd_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(8192)},
			w.Func{
				Name: "sandboxd_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64},
				Body: w.Seq(body, w.I64Const(at<<32|int64(len(answer)))),
			}),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atText: []byte("ok"), atKey: []byte("k"), at: []byte(answer)},
	}.Encode()
	p.Manifest.ABI = tool.Reactor
	return p
}

// TestRecordOfACommit: what the observer records with a commit is what the call
// comes to, and the end of the call knows that it was recorded.
func TestRecordOfACommit(t *testing.T) {
	wrote := w.Seq(incrementKey, write(2, 2))
	saving := Binding{Outbox: []string{host}, CommitOnError: []string{"t"}}
	for name, c := range map[string]struct {
		pkg      *tool.Package
		binding  Binding
		outcome  Outcome
		recorded bool
	}{
		"ok":              {keyed(wrote, writer), sends1, OK, true},
		"an error, saved": {answersInError(wrote), saving, ToolError, true},
		"an error":        {answersInError(wrote), sends1, ToolError, false},
		"only read":       {keyed(w.Seq(getKey, write(2, 2)), writer), sends1, OK, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			var saved, ended *Result
			e, err := New(t.Context(), Options{Store: s, Observer: Observer{
				Record: func(_ CallInfo, r *Result) []store.Record {
					saved = r
					return []store.Record{{Time: time.Now(), Data: []byte(`{}`)}}
				},
				CallEnd: func(_ CallInfo, r *Result) { ended = r },
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close(context.Background())
			p := mustLoad(t, e, c.pkg, c.binding)
			r := p.Call(t.Context(), Request{Tool: "t"})
			journal, err := s.Records(t.Context(), "", 9)
			if err != nil || r != ended || r.Outcome != c.outcome || r.Recorded != c.recorded || len(journal) == 1 != c.recorded {
				t.Fatalf("%s (%v), recorded %v, %d records, %v", r.Outcome, r.Err, r.Recorded, len(journal), err)
			}
			if !c.recorded {
				return
			}
			if saved.Outcome != c.outcome || !saved.Committed || saved.CallID != r.CallID || string(saved.Stderr) != string(r.Stderr) || len(saved.Stderr) == 0 ||
				len(saved.Effects) != len(r.Effects) || saved.Duration <= 0 {
				t.Errorf("recorded %+v\nended %+v", saved, r)
			}
		})
	}
}
