package stored

import (
	"bytes"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// What undoing takes of a large file that is removed is in the store already: it
// is named, and neither read nor put again. Its pieces may be a hole and a short one.
func TestChunksAreNamed(t *testing.T) {
	s := newCounted()
	large := append(append(bytes.Repeat([]byte("a"), chunkSize), make([]byte, chunkSize)...), "end"...)
	base := now(t, s)
	g := over(t, base)
	must(t, g.write("large", large, 0))
	must(t, g.write("small", []byte("small"), 0))
	must(t, apply(t.Context(), s, base, g.change(t)))

	base = now(t, s)
	g = over(t, base)
	must(t, g.rm("large"))
	must(t, g.rm("small"))
	c := g.change(t)
	s.reset()
	rec, err := undo.Build(t.Context(), undo.Options{Blobs: s}, []undo.Tree{{
		Name: "data", Path: "/data", Base: base, Result: g.Result(), Steps: c.Steps,
	}}, nil)
	must(t, err)
	rec.CallID, rec.Principal, rec.Package, rec.Tool, rec.Time = "call", "local", "notes", "t", at()
	if n := s.reset(); n["blob"] != 0 || n["put"] != 0 {
		t.Errorf("asked for %v", n)
	}
	if len(rec.Blobs()) != 2 || !rec.Complete() || rec.Size != chunkSize+3 {
		t.Errorf("%d blobs of %d bytes, lost %v", len(rec.Blobs()), rec.Size, rec.Lost)
	}

	must(t, apply(t.Context(), s, base, c))
	g = over(t, now(t, s))
	must(t, undo.Restore(t.Context(), rec, undo.Where{Volumes: func(string) *volume.Overlay { return g.Overlay }, Blobs: s}))
	if b, err := g.read("large"); err != nil || !bytes.Equal(b, large) {
		t.Errorf("put back %d bytes, %v", len(b), err)
	}
	if b, err := g.read("small"); err != nil || string(b) != "small" {
		t.Errorf("put back %q, %v", b, err)
	}
}
