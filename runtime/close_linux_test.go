package runtime

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// imageFiles counts the files that images have open in this process, and all.
func imageFiles(t testing.TB) (images, all int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		target, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil && (strings.Contains(target, "sandboxd-image") || strings.HasSuffix(target, "/pagemap")) {
			images++
		}
	}
	return images, len(list)
}

// TestEngineClosesImages: an engine that was closed, before its packages were, holds
// no file; that a call is in flight, or that a package was replayed, changes nothing.
func TestEngineClosesImages(t *testing.T) {
	wasImages, was := imageFiles(t)
	for range 3 {
		began := make(chan struct{}, 1)
		e, err := New(t.Context(), Options{Store: memstore.New(), Rewrite: rewriting, Observer: Observer{Acquired: func(string) {
			select {
			case began <- struct{}{}:
			default:
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var ps []*Package
		for range 3 {
			m := inputPackage("")
			m.Manifest.Tools[0].Claim = capabilities.Claim{Idempotent: capabilities.True, OpenWorld: capabilities.False}
			p, _ := load(t, e, m)
			if r := p.Call(t.Context(), Request{Tool: "t", Arguments: []byte(`{"do":"keep"}`)}); r.Outcome != OK || r.Replay != Idempotent {
				t.Fatalf("%s, %q: %v", r.Outcome, r.Replay, r.Err)
			}
			ps = append(ps, p)
		}
		if images, _ := imageFiles(t); images < wasImages+len(ps) {
			t.Fatalf("%d files of images, %d before: the test does not reach what it should", images, wasImages)
		}
		<-began // once, by the calls above
		ended := make(chan *Result)
		go func() {
			ended <- ps[0].Call(context.Background(), Request{Tool: "t", Arguments: []byte(`{"do":"spin"}`)})
		}()
		<-began
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := <-ended; !errors.Is(r.Err, ErrClosed) {
			t.Errorf("%s: %v", r.Outcome, r.Err)
		}
		if images, all := imageFiles(t); images != wasImages || all > was {
			t.Errorf("%d files of images, %d before; %d files, %d before", images, wasImages, all, was)
		}
		for _, p := range ps {
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
