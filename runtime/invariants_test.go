package runtime

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

// surroundings is a guest that answers with what it can see without touching a
// volume: for each descriptor from 3 to 9 its prestat and the name, then the
// environment's and the arguments' sizes.
func surroundings() []byte {
	const (
		prestatGet = iota
		prestatName
		environSizes
		argsSizes
		writeOut
	)
	i := w.I32
	errno := []byte{i}
	module := w.Module{
		Funcs: []w.Func{
			{Import: wasiModule, Name: "fd_prestat_get", Params: []byte{i, i}, Results: errno},
			{Import: wasiModule, Name: "fd_prestat_dir_name", Params: []byte{i, i, i}, Results: errno},
			{Import: wasiModule, Name: "environ_sizes_get", Params: []byte{i, i}, Results: errno},
			{Import: wasiModule, Name: "args_sizes_get", Params: []byte{i, i}, Results: errno},
			{Import: wasiModule, Name: "fd_write", Params: []byte{i, i, i, i}, Results: errno},
		},
		Memory: [2]uint32{1, 0},
	}
	var body []byte
	at := int32(4096)
	keep := func(call []byte) { body = append(append(body, call...), w.Drop...) }
	for fd := int32(3); fd < 10; fd++ {
		keep(w.Seq(w.I32Const(fd), w.I32Const(at), w.Call(prestatGet)))
		// the name's length is what prestat says
		keep(w.Seq(w.I32Const(fd), w.I32Const(at+8), w.I32Const(at+4), []byte{0x28, 2, 0}, w.Call(prestatName)))
		at += 64
	}
	keep(w.Seq(w.I32Const(at), w.I32Const(at+4), w.Call(environSizes)))
	keep(w.Seq(w.I32Const(at+8), w.I32Const(at+12), w.Call(argsSizes)))
	body = append(body, w.Seq(storeI32(atIovec, 4096), storeI32(atIovec+4, at+16-4096))...)
	keep(w.Seq(w.I32Const(1), w.I32Const(atIovec), w.I32Const(1), w.I32Const(atResult), w.Call(writeOut)))
	module.Funcs = append(module.Funcs, w.Func{Name: "_start", Body: body})
	return module.Encode()
}

// TestSurroundingsAreTheSameForEveryTool: preopens, their numbers and order,
// environment and arguments do not depend on the tool's claim, what is granted
// to it, or the call. A grant is never expressed by a preopen that is not there.
func TestSurroundingsAreTheSameForEveryTool(t *testing.T) {
	p := pack(surroundings(), tool.Command, readOnly)
	p.Manifest.Requests.Volumes = append(p.Manifest.Requests.Volumes, tool.VolumeRequest{Name: "more", Path: "/more", Access: capabilities.ReadAccess})
	for name, claim := range map[string]capabilities.Claim{"writes": writer, "open": {}, "additive": {Destructive: capabilities.False}} {
		d := p.Manifest.Tools[0]
		d.Name, d.Claim = name, claim
		p.Manifest.Tools = append(p.Manifest.Tools, d)
	}
	loaded, _ := load(t, newEngine(t, Observer{}), p)
	var first []byte
	for _, tl := range loaded.Tools() {
		for range 2 {
			r := loaded.Call(context.Background(), Request{Tool: tl.Definition.Name})
			if r.Outcome != OK {
				t.Fatalf("%s: %s, %v", tl.Definition.Name, r.Outcome, r.Err)
			}
			seen := r.Output.Content[0]
			if first == nil {
				first = seen
			}
			if !bytes.Equal(seen, first) {
				t.Errorf("%s sees other surroundings:\n%s\n%s", tl.Definition.Name, seen, first)
			}
		}
	}
	for _, mount := range []string{"/data", "/more", "/tmp"} {
		if !bytes.Contains(first, []byte(mount)) {
			t.Errorf("no preopen at %s in %s", mount, first)
		}
	}
}

// TestStateIsKeyedByPrincipalAndPackage: two packages that ask for a volume of
// one name get two.
func TestStateIsKeyedByPrincipalAndPackage(t *testing.T) {
	state := t.TempDir()
	e, err := New(context.Background(), Options{Store: memstore.New(), State: state})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	for _, name := range []string{"one", "two"} {
		loaded, err := e.Load(context.Background(), pack(writesAndSmiles(), tool.Command, writer), Binding{As: name})
		if err != nil {
			t.Fatal(err)
		}
		if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
			t.Fatalf("%s: %s, %v", name, r.Outcome, r.Err)
		}
		if _, err := managed(e, LocalPrincipal, name, "data", "new"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAbandonedStagesAreTold: what a killed process left with files of the
// volume in it is not deleted, and the operator hears of it.
func TestAbandonedStagesAreTold(t *testing.T) {
	var told []string
	e := newEngine(t, Observer{Abandoned: func(_ string, stages []string) { told = append(told, stages...) }})
	loaded, dir := load(t, e, pack(writesAndSmiles(), tool.Command, writer))
	stage := filepath.Join(dir, ".sandboxd-OLD")
	if err := os.MkdirAll(stage, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stage, "o-1"), []byte("the only copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Fatalf("%s, %v", r.Outcome, r.Err)
	}
	if len(told) != 1 || told[0] != ".sandboxd-OLD" {
		t.Errorf("told of %q", told)
	}
	if _, err := os.Stat(filepath.Join(stage, "o-1")); err != nil {
		t.Error(err)
	}
}
