package runtime

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// Functions of sandboxd_mcp after those that every test guest imports.
const (
	mcpProgress = imports
	mcpLog      = imports + 1
)

var mcpImports = []w.Func{
	{Import: "sandboxd_mcp", Name: "progress", Params: []byte{w.F64, w.F64, w.I32, w.I32}, Results: []byte{w.I32}},
	{Import: "sandboxd_mcp", Name: "log", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}},
}

func f64Const(last ...byte) []byte { // the two highest bytes
	return append([]byte{0x44, 0, 0, 0, 0, 0, 0}, last...)
}

// sends reports 1 of 2 with the text at atText, logs it twice, once on no level,
// and drops the errnos.
func sends() []byte {
	log := func(n int32) []byte {
		return w.Seq(w.I32Const(atPath), w.I32Const(n), w.I32Const(atText), w.I32Const(5), w.Call(mcpLog), w.Drop)
	}
	return w.Seq(
		f64Const(0xf0, 0x3f), f64Const(0, 0x40), w.I32Const(atText), w.I32Const(5), w.Call(mcpProgress), w.Drop,
		log(4), log(3))
}

func sender(body []byte, start int) []byte {
	m := w.Module{
		Funcs:  slices.Concat(wasiImports, mcpImports, []w.Func{{Name: "_start", Body: body}, {Body: sends()}}),
		Memory: [2]uint32{1, 0},
		Data:   map[uint32][]byte{atPath: []byte("info"), atText: []byte("halfway")},
		Start:  start,
	}
	return m.Encode()
}

func TestNotesReachTheCaller(t *testing.T) {
	p, _ := load(t, newEngine(t, Observer{}), pack(sender(sends(), 0), tool.Command, readOnly))
	var got []string
	r := p.Call(t.Context(), Request{Tool: "t", Notify: Notify{
		Progress: func(p Progress) { got = append(got, fmt.Sprintf("%v/%v %s", p.Progress, p.Total, p.Message)) },
		Log:      func(m LogMessage) { got = append(got, m.Level+": "+m.Text) },
	}})
	if want := []string{"1/2 halfw", "info: halfw"}; r.Outcome != OK || !slices.Equal(got, want) || r.DroppedNotes != 1 {
		t.Errorf("got %q, %s (%v), %d dropped", got, r.Outcome, r.Err, r.DroppedNotes)
	}
	if r := p.Call(t.Context(), Request{Tool: "t"}); r.Outcome != OK || r.DroppedNotes != 1 {
		t.Errorf("nobody listens: %s (%v), %d dropped", r.Outcome, r.Err, r.DroppedNotes)
	}
}

// Start-up code is nobody's call: it may send, and nobody hears it.
func TestNotesOfStartUpCode(t *testing.T) {
	p, _ := load(t, newEngine(t, Observer{}), pack(sender(nil, imports+len(mcpImports)+2), tool.Command, readOnly))
	heard := 0
	r := p.Call(t.Context(), Request{Tool: "t", Notify: Notify{
		Progress: func(Progress) { heard++ },
		Log:      func(LogMessage) { heard++ },
	}})
	if r.Outcome != OK || heard != 0 {
		t.Errorf("%s (%v), %d heard", r.Outcome, r.Err, heard)
	}
}

func TestPanicOfTheListener(t *testing.T) {
	p, _ := load(t, newEngine(t, Observer{}), pack(sender(sends(), 0), tool.Command, readOnly))
	r := p.Call(t.Context(), Request{Tool: "t", Notify: Notify{Progress: func(Progress) { panic("listener") }}})
	if _, ok := errors.AsType[*HostFault](r.Err); r.Outcome != HostError || !ok || r.Committed {
		t.Errorf("%s (%v)", r.Outcome, r.Err)
	}
}

func TestLinkMCP(t *testing.T) {
	for name, f := range map[string]w.Func{
		"another signature": {Import: "sandboxd_mcp", Name: "log", Params: []byte{w.I32, w.I32}, Results: []byte{w.I32}},
		"no such function":  {Import: "sandboxd_mcp", Name: "sample"},
		"not yet":           {Import: "sandboxd_http", Name: "log"},
	} {
		module := w.Module{Funcs: []w.Func{f, {Name: "_start"}}, Memory: [2]uint32{1, 0}}.Encode()
		if err := CheckLink(module, tool.Command); !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckLink(sender(nil, 0), tool.Command); err != nil {
		t.Error(err)
	}
}
