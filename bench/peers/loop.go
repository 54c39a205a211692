package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/report"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// loops are hot loops of a few milliseconds, beside which the rest of a call does
// not count. The first, FNV-1a over the memory, is what goals are judged by. In the
// second there is nothing, so that whatever is added shows most.
func loops() []loop {
	const i, h = 2, 3 // locals
	count := wasmtest.Seq(wasmtest.LocalGet(i), wasmtest.I32Const(-1), wasmtest.I32Add, wasmtest.LocalSet(i))
	hash := wasmtest.Seq(
		wasmtest.LocalGet(h),
		wasmtest.LocalGet(i), wasmtest.I32Const(1<<16-1), []byte{0x71}, []byte{0x2d, 0, 0}, // i32.and, i32.load8_u
		[]byte{0x73}, wasmtest.I32Const(16777619), []byte{0x6c}, wasmtest.LocalSet(h)) // i32.xor, i32.mul
	return []loop{
		{"hashing", "FNV-1a over the memory", 2_000_000, append(hash, count...)},
		{"counting", "nothing in it but its counter", 4_000_000, count},
	}
}

// loop is one hot loop. The body runs until local 2 is 0.
type loop struct {
	name, what string
	turns      int32
	body       []byte
}

// loopTables compare hot loops that can be stopped with ones that cannot.
func (l *lab) loopTables(ctx context.Context) (all []*report.Table, err error) {
	for _, h := range loops() {
		t, err := l.loopTable(ctx, h)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (l *lab) loopTable(ctx context.Context, h loop) (t *report.Table, err error) {
	n := len(l.closers)
	defer func() {
		if end := l.closeTo(n); err == nil {
			err = end
		}
	}()
	w := work{"spin", json.RawMessage(`{}`), "spun"}
	module := h.module()
	r := &rows{}
	for _, plain := range []struct {
		row  string
		stop bool
	}{{report.LoopPlain, false}, {report.LoopWazero, true}} {
		v, err := l.openLiveModule(ctx, module, "", plain.stop)
		if err != nil {
			return nil, err
		}
		if err := r.add(plain.row, v.subject("", w), nil); err != nil {
			return nil, err
		}
	}
	metered, err := rewritten(module)
	if err != nil {
		return nil, err
	}
	v, err := l.openLiveModule(ctx, metered, "", false)
	if err != nil {
		return nil, err
	}
	if err := r.add(report.LoopMetered, v.subject("", w), nil); err != nil {
		return nil, err
	}
	box, err := l.openSandbox(ctx, runtime.StrategyImage)
	if err != nil {
		return nil, err
	}
	p, err := box.add(ctx, &tool.Package{Module: module, Manifest: tool.Manifest{
		Name: "spin", ABI: tool.Reactor, Tools: []tool.Definition{definition("spin", `{"type":"object"}`)},
		Limits: tool.Limits{Memory: 1 << 20, Timeout: 10 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
	}}, "")
	if err != nil {
		return nil, err
	}
	if err := r.add(report.LoopSandboxd, sandboxed("", p, w), nil); err != nil {
		return nil, err
	}
	l.say("hot loop, %s: %d subjects", h.name, len(r.subjects))
	if t, err = r.table(ctx, l.options(1)); err != nil {
		return nil, err
	}
	t.ID, t.Title, t.Base = report.LoopTable(h.name), "Interruption: a hot loop, "+h.name, report.LoopPlain
	t.Conditions = fmt.Sprintf("%d iterations, %s, in a live instance of wazero, the third as the engine rewrites it, and in a whole call of sandboxd.", h.turns, h.what)
	return t, nil
}

// module is a reactor that goes round the loop and answers "spun".
func (h loop) module() []byte {
	const answer = 1024
	return wasmtest.Module{
		Funcs: []wasmtest.Func{
			{Name: "sandboxd_alloc", Params: []byte{wasmtest.I32}, Results: []byte{wasmtest.I32}, Body: wasmtest.I32Const(4096)},
			{
				Name: "sandboxd_call", Params: []byte{wasmtest.I32, wasmtest.I32}, Results: []byte{wasmtest.I64}, Locals: []byte{wasmtest.I32, wasmtest.I32},
				Body: wasmtest.Seq(
					wasmtest.I32Const(h.turns), wasmtest.LocalSet(2),
					wasmtest.Loop, h.body, wasmtest.LocalGet(2), wasmtest.BrIf(0), wasmtest.End,
					wasmtest.I32Const(answer-4), wasmtest.LocalGet(3), []byte{0x36, 2, 0}, // i32.store: the loop is not for nothing
					wasmtest.I64Const(answer<<32|4)),
			},
		},
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{answer: []byte("spun")},
	}.Encode()
}
