package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/tool"
)

func newEngineAt(t *testing.T, state string) *Engine {
	t.Helper()
	e, err := New(context.Background(), Options{Store: memstore.New(), State: state})
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

// managed looks up a path in a managed volume.
func managed(e *Engine, principal, pkg, name, path string) (volume.Info, error) {
	now, err := e.store.Snapshot(context.Background())
	if err != nil {
		return volume.Info{}, err
	}
	t := stored.New(context.Background(), stored.Options{
		Reader: stored.At(now), Blobs: e.store, Space: stored.SpaceOf(principal, pkg, name),
	})
	info, _, err := t.Lstat(path)
	return info, err
}

// creates reports whether a call made a file.
func creates(r *Result) bool {
	return slices.ContainsFunc(r.Effects, func(e capabilities.Effect) bool { return e.Verb == capabilities.Create })
}

// TestPrincipalsHaveTheirOwnVolumes, made when they first call.
func TestPrincipalsHaveTheirOwnVolumes(t *testing.T) {
	state := t.TempDir()
	e := newEngineAt(t, state)
	loaded := mustLoad(t, e, pack(writesAndSmiles(), tool.Command, writer), Binding{})
	for _, principal := range []string{"alice", "bob", ""} {
		r := loaded.Call(context.Background(), Request{Tool: "t", Principal: principal})
		// Who finds another's file creates none.
		if r.Outcome != OK || !creates(r) {
			t.Fatalf("%q: %s, %v, %v", principal, r.Outcome, r.Effects, r.Err)
		}
	}
	for _, principal := range []string{"alice", "bob", LocalPrincipal} {
		if _, err := managed(e, principal, "p", "data", "new"); err != nil {
			t.Error(err)
		}
	}
}

// TestPrincipalsAreNames: one becomes a folder below the state.
func TestPrincipalsAreNames(t *testing.T) {
	state := t.TempDir()
	loaded := mustLoad(t, newEngineAt(t, state), pack(writesAndSmiles(), tool.Command, writer), Binding{})
	for _, principal := range []string{"..", "a/b", "A", "_shared", "a\x00", "x.y"} {
		r := loaded.Call(context.Background(), Request{Tool: "t", Principal: principal})
		if r.Outcome != Refused || !errors.Is(r.Err, ErrPrincipal) {
			t.Errorf("%q: %s, %v", principal, r.Outcome, r.Err)
		}
	}
	spaces, err := loaded.engine.store.Spaces(context.Background())
	made := slices.ContainsFunc(spaces, func(s store.Space) bool { return s.Principal != "_host" })
	if err != nil || made {
		t.Errorf("something was made: %v, %v", spaces, err)
	}
}

// TestSharedVolumes: packages that the operator binds to one name share it, of
// each principal; two volumes of one package do not.
func TestSharedVolumes(t *testing.T) {
	state := t.TempDir()
	e := newEngineAt(t, state)
	b := Binding{Managed: map[string]string{"data": "common"}}
	for i, name := range []string{"one", "two"} {
		b.As = name
		p := pack(writesAndSmiles(), tool.Command, writer)
		p.Dir = t.TempDir()
		loaded := mustLoad(t, e, p, b)
		r := loaded.Call(context.Background(), Request{Tool: "t", Principal: "alice"})
		if r.Outcome != OK {
			t.Fatalf("%s: %s, %v", name, r.Outcome, r.Err)
		}
		if creates(r) != (i == 0) {
			t.Errorf("%s: effects %v", name, r.Effects)
		}
	}
	if _, err := managed(e, "alice", sharedPackage, "common", "new"); err != nil {
		t.Error(err)
	}
	p := pack(writesAndSmiles(), tool.Command, writer)
	p.Manifest.Requests.Volumes = append(p.Manifest.Requests.Volumes, tool.VolumeRequest{Name: "more", Path: "/more"})
	b = Binding{Managed: map[string]string{"data": "common", "more": "common"}}
	if _, err := e.Load(context.Background(), p, b); !errors.Is(err, ErrVolume) {
		t.Errorf("one volume twice in a package: %v", err)
	}
}

// TestManyPrincipalsHoldFewFolders open.
func TestManyPrincipalsHoldFewFolders(t *testing.T) {
	e := newEngine(t, Observer{})
	loaded, _ := load(t, e, pack(command("", "", nil), tool.Command, writer))
	for i := range maxHeld + 10 {
		if r := loaded.Call(context.Background(), Request{Tool: "t", Principal: fmt.Sprintf("user-%d", i)}); r.Outcome != OK {
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
	}
	if n, open := len(loaded.volumes.held), len(loaded.engine.folders.open); n != maxHeld || open != 1 {
		t.Errorf("%d principals held, %d folders open, want %d and 1", n, open, maxHeld)
	}
}

// TestAReplacedFolderIsOpenedAgain: what a call saves is where the operator
// looks for it.
func TestAReplacedFolderIsOpenedAgain(t *testing.T) {
	e := newEngine(t, Observer{})
	loaded, dir := load(t, e, pack(writesAndSmiles(), tool.Command, writer))
	other := mustLoad(t, e, pack(command("", "", nil), tool.Command, writer), Binding{Folders: map[string]string{"data": dir}})
	for range 2 {
		if r := other.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK { // who holds it, too
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
		if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
			t.Fatalf("%s, %v", r.Outcome, r.Err)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(os.Rename(dir, filepath.Join(t.TempDir(), "away")), os.Mkdir(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != HostError || !errors.Is(r.Err, ErrVolume) {
		t.Errorf("without a folder: %s, %v", r.Outcome, r.Err)
	}
}
