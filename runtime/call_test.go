package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

const cheerful = `{"content":[{"type":"text","text":"all good"}]}`

// writesAndSmiles tries to make a file, drops the errno and answers cheerfully.
func writesAndSmiles() []byte {
	return command("new", cheerful, w.Seq(open("new", oflagCreate, rightWrite), write(-1, 4), write(1, int32(len(cheerful)))))
}

func TestReadOnlyToolIsStoppedInTheAct(t *testing.T) {
	var recorded []capabilities.Violation
	e := newEngine(t, Observer{Violation: func(_ CallInfo, v capabilities.Violation) { recorded = append(recorded, v) }})
	loaded, dir := load(t, e, pack(writesAndSmiles(), tool.Command, readOnly))
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	want := capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpCreate, Object: "/data/new", Phase: capabilities.PhaseOperation}
	if r.Outcome != Violation || r.Violation == nil || *r.Violation != want {
		t.Fatalf("outcome %s, violation %+v, err %v", r.Outcome, r.Violation, r.Err)
	}
	if !errors.Is(r.Err, capabilities.ErrViolation) {
		t.Errorf("error %v does not match ErrViolation", r.Err)
	}
	if !slices.Equal(recorded, []capabilities.Violation{want}) {
		t.Errorf("observed %v", recorded)
	}
	said, err := json.Marshal(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(said), "all good") || strings.Contains(string(said), dir) {
		t.Errorf("the answer holds guest text or a host path: %s", said)
	}
	untouched(t, dir)
}

func TestWriterCommits(t *testing.T) {
	loaded, dir := load(t, newEngine(t, Observer{}), pack(writesAndSmiles(), tool.Command, writer))
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != OK || !r.Committed {
		t.Fatalf("outcome %s, committed %v, err %v", r.Outcome, r.Committed, r.Err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(b) != cheerful[:4] {
		t.Errorf("new holds %q, %v", b, err)
	}
	if !slices.ContainsFunc(r.Effects, func(e capabilities.Effect) bool {
		return e.Verb == capabilities.Create && e.Object == "/data/new" && e.Bytes == 4
	}) {
		t.Errorf("effects %+v", r.Effects)
	}
}

func TestDryRunCommitsNothing(t *testing.T) {
	loaded, dir := load(t, newEngine(t, Observer{}), pack(writesAndSmiles(), tool.Command, writer))
	r := loaded.Call(context.Background(), Request{Tool: "t", DryRun: true})
	if r.Outcome != OK || r.Committed || !wrote(r.Effects) {
		t.Fatalf("outcome %s, committed %v, effects %+v", r.Outcome, r.Committed, r.Effects)
	}
	untouched(t, dir)
}

// TestNothingCommitsUnlessAllWentWell: whatever ends a call badly, its writes
// are dropped and the client is told.
func TestNothingCommitsUnlessAllWentWell(t *testing.T) {
	const (
		failed = `{"content":[{"type":"text","text":"no"}],"isError":true}`
		broken = `{"content":[{"type":"smell","text":"no"}]}`
	)
	wrote := open("new", oflagCreate, rightWrite)
	for name, body := range map[string][]byte{
		"isError":         w.Seq(wrote, write(1, int32(len(failed)))),
		"exit status":     w.Seq(wrote, exit(3)),
		"trap":            w.Seq(wrote, w.Unreachable),
		"truncated old":   w.Seq(open("old", oflagTrunc, rightWrite), exit(1)),
		"unusable answer": w.Seq(wrote, write(1, int32(len(broken)))),
	} {
		t.Run(name, func(t *testing.T) {
			text := failed
			if name == "unusable answer" {
				text = broken
			}
			path := "new"
			if name == "truncated old" {
				path = "old"
			}
			loaded, dir := load(t, newEngine(t, Observer{}), pack(command(path, text, body), tool.Command, writer))
			r := loaded.Call(context.Background(), Request{Tool: "t"})
			if r.Outcome != ToolError || r.Committed || !r.Output.IsError {
				t.Fatalf("outcome %s, committed %v, output %s, err %v", r.Outcome, r.Committed, r.Output.Content, r.Err)
			}
			untouched(t, dir)
		})
	}
}

func TestClosedWorldSocket(t *testing.T) {
	body := w.Seq(w.I32Const(99), w.I32Const(0), w.Call(sockShutdown), w.Drop)
	closed, _ := load(t, newEngine(t, Observer{}), pack(command("", "", body), tool.Command, readOnly))
	r := closed.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != Violation || r.Violation.Hint != capabilities.OpenWorldHint || r.Violation.Operation != capabilities.OpSocket {
		t.Errorf("closed: %s, %+v", r.Outcome, r.Violation)
	}
	open, _ := load(t, newEngine(t, Observer{}), pack(command("", "", body), tool.Command, capabilities.Claim{}))
	r = open.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != OK || len(r.Denials) != 1 || r.Denials[0].Capability != capabilities.CapSocket || r.Denials[0].Errno != capabilities.ENOTSUP {
		t.Errorf("open: %s, %+v", r.Outcome, r.Denials)
	}
}

// TestNoUpdateIsLost: of calls that each read a number from a file and write
// the next one, as many are counted as ended well; the others say that they
// met a conflict.
func TestNoUpdateIsLost(t *testing.T) {
	fdRead := w.Func{Import: "wasi_snapshot_preview1", Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}}
	pwrite := w.Func{Import: "wasi_snapshot_preview1", Name: "fd_pwrite", Params: []byte{w.I32, w.I32, w.I32, w.I64, w.I32}, Results: []byte{w.I32}}
	load32 := []byte{0x28, 2, 0}
	body := w.Seq(
		open("count", 0, rightRead|rightWrite),
		storeI32(atIovec, atText), storeI32(atIovec+4, 4),
		w.I32Const(atFD), load32, w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(1), w.Drop,
		w.I32Const(atText), w.I32Const(atText), load32, w.I32Const(1), []byte{0x6a, 0x36, 2, 0}, // add; i32.store
		w.I32Const(atFD), load32, w.I32Const(atIovec), w.I32Const(1), w.I64Const(0), w.I32Const(atResult), w.Call(2), w.Drop,
	)
	m := w.Module{
		Funcs:  []w.Func{wasiImports[pathOpen], fdRead, pwrite, {Name: "_start", Body: body}},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte("count")},
	}
	loaded, dir := load(t, newEngine(t, Observer{}), pack(m.Encode(), tool.Command, writer))
	file := filepath.Join(dir, "count")
	if err := os.WriteFile(file, make([]byte, 4), 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var counted atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 10 {
				switch r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome {
				case OK:
					counted.Add(1)
				case Conflict:
				default:
					t.Errorf("outcome %s, %v", r.Outcome, r.Err)
				}
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := int64(binary.LittleEndian.Uint32(b)); got != counted.Load() || got == 0 {
		t.Errorf("%d counted in the file, %d calls ended well", got, counted.Load())
	}
	t.Logf("%d of 80 calls ended well", counted.Load())
}

func TestRefusedRequests(t *testing.T) {
	loaded, _ := load(t, newEngine(t, Observer{}), pack(command("", "", nil), tool.Command, readOnly))
	if r := loaded.Call(context.Background(), Request{Tool: "nobody"}); r.Outcome != Refused || !errors.Is(r.Err, ErrNoTool) {
		t.Errorf("unknown tool: %s, %v", r.Outcome, r.Err)
	}
	for _, arguments := range []string{`[]`, `null`, `1`, `{`, `"x"`} {
		if r := loaded.Call(context.Background(), Request{Tool: "t", Arguments: []byte(arguments)}); r.Outcome != Refused || !errors.Is(r.Err, ErrArguments) {
			t.Errorf("arguments %s: %s, %v", arguments, r.Outcome, r.Err)
		}
	}
}

// TestStderrStaysOutOfTheResult: the log of a guest is for the operator.
func TestStderrStaysOutOfTheResult(t *testing.T) {
	loaded, _ := load(t, newEngine(t, Observer{}), pack(command("", "psst", write(2, 4)), tool.Command, readOnly))
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != OK || strings.Contains(string(out), "psst") || string(r.Stderr) != "psst" {
		t.Errorf("outcome %s, stderr %q, result %s", r.Outcome, r.Stderr, out)
	}
}

// TestReportMode: a call that breaks its claim runs on to its end, all that it
// broke is seen, and nothing is kept; nor is anything of an honest call.
func TestReportMode(t *testing.T) {
	e := newEngine(t, Observer{})
	for name, c := range map[string]struct {
		claim   capabilities.Claim
		outcome Outcome
		broken  int
	}{"lying": {readOnly, Violation, 3}, "honest": {capabilities.Claim{}, OK, 0}} {
		body := w.Seq(open("new", oflagCreate, rightWrite), write(-1, 4), mkdir("new"),
			w.I32Const(0), w.I32Const(0), w.Call(sockShutdown), w.Drop, write(1, int32(len(cheerful))))
		p := pack(command("new", cheerful, body), tool.Command, c.claim)
		dir := t.TempDir()
		loaded, err := e.Load(context.Background(), p, Binding{Folders: map[string]string{"data": dir}, Mode: capabilities.Report})
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Tools()[0].Listed; got != (capabilities.Claim{}.Effective()) {
			t.Errorf("%s: listed as %+v", name, got)
		}
		r := loaded.Call(context.Background(), Request{Tool: "t"})
		if r.Outcome != c.outcome || len(r.All) != c.broken || r.Committed || !wrote(r.Effects) {
			t.Errorf("%s: %s, broken %v, committed %v, effects %v, err %v", name, r.Outcome, r.All, r.Committed, r.Effects, r.Err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
