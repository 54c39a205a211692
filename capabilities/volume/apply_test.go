package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// lively is a tree, and livelyCall does something of every sort to it.
var lively = map[string]string{
	"patched": strings.Repeat("p", 3*chunkSize), "appended": "one\n", "replaced": "old", "removed": "bye",
	"moved": "wander", "swap1": "1", "swap2": "2", "dir/sub/f": "deep", "dir/g": "g", "empty/": "",
	"link": "->dir/g", "file-to-dir": "f", "dir-to-file/x": "x", "timed": "t", "renamed-over": "target",
}

func livelyCall(t testing.TB, g *guest) {
	t.Helper()
	for _, err := range []error{
		g.write("patched", "XX", chunkSize+5), g.write("appended", "two\n", 4), g.write("replaced", "new", -1),
		g.rm("removed"), g.mv("moved", "dir/arrived"),
		g.mv("swap1", "tmp"), g.mv("swap2", "swap1"), g.mv("tmp", "swap2"),
		g.mv("dir", "folder"), g.write("folder/sub/f", "er", 4), g.rm("empty"), g.mkdir("made"), g.mkdir("made/more"),
		g.write("made/more/f", "born", 0), g.mv("link", "made/link"),
		g.rm("file-to-dir"), g.mkdir("file-to-dir"), g.write("file-to-dir/f", "f", 0),
		g.rm("dir-to-file/x"), g.rm("dir-to-file"), g.write("dir-to-file", "now a file", 0),
		g.write("fresh", "over", 0), g.mv("fresh", "renamed-over"),
	} {
		must(t, err)
	}
	for _, path := range []string{"timed", "made", "."} {
		n, err := g.node(path, false)
		must(t, err)
		must(t, g.SetTimes(n, time.Unix(1e9, 5).UTC()))
	}
}

var livelyAfter = map[string]string{
	"patched":  strings.Repeat("p", chunkSize+5) + "XX" + strings.Repeat("p", 2*chunkSize-7),
	"appended": "one\ntwo\n", "replaced": "new", "swap1": "2", "swap2": "1", "folder/arrived": "wander",
	"folder/sub/f": "deeper", "folder/g": "g", "made/more/f": "born", "made/link": "->dir/g", "file-to-dir/f": "f",
	"dir-to-file": "now a file", "timed": "t", "renamed-over": "over",
}

func TestApply(t *testing.T) {
	h, dir := planted(t, lively)
	must(t, os.Chmod(filepath.Join(dir, "replaced"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "renamed-over"), 0o755))
	g := overlay(t, h)
	livelyCall(t, g)
	must(t, g.commit(t, h))

	want := t.TempDir()
	plant(t, want, livelyAfter)
	must(t, os.Chmod(filepath.Join(want, "replaced"), 0o600))
	must(t, os.Chmod(filepath.Join(want, "renamed-over"), 0o755))
	sameImage(t, image(t, dir), image(t, want))
	for _, path := range []string{"timed", "made", "."} {
		fi, err := os.Stat(filepath.Join(dir, path))
		must(t, err)
		if !fi.ModTime().Equal(time.Unix(1e9, 5)) {
			t.Errorf("time of %s: %v", path, fi.ModTime())
		}
	}
}

// TestApplyFaults lets each file-system operation fail in turn: the tree is
// then as before, or as after, and no stage is left.
func TestApplyFaults(t *testing.T) { testApplyFaults(t, nil) }

// TestApplyFaultsFar is TestApplyFaults where nothing can be renamed.
func TestApplyFaultsFar(t *testing.T) { testApplyFaults(t, far) }

func testApplyFaults(t *testing.T, apart func(from, to string) bool) {
	injected := errors.New("injected")
	template := t.TempDir()
	plant(t, template, lively)
	after := t.TempDir()
	plant(t, after, livelyAfter)
	want := image(t, after)
	failed, total := 0, 0
	scratch := quickDir(t)
	step := every(5)
	for k := 1; ; k += step {
		dir := filepath.Join(scratch, strconv.Itoa(k))
		must(t, os.CopyFS(dir, os.DirFS(template)))
		before := image(t, dir)
		h := open(t, dir)
		h.disk.apart = apart
		g := overlay(t, h)
		livelyCall(t, g)
		c, err := g.Change()
		must(t, err)
		n, where := 0, ""
		h.disk.fault = func(op, name string) error {
			if n++; n == k {
				where = op + " " + name
				return injected
			}
			return nil
		}
		err = h.Apply(t.Context(), c)
		got := image(t, dir)
		switch {
		case err == nil && !equal(got, want):
			t.Errorf("fault %d (%s): half done, no error", k, where)
			sameImage(t, got, want)
		case err != nil && !errors.Is(err, injected):
			t.Errorf("fault %d (%s): %v", k, where, err)
		case err != nil && !equal(got, before):
			t.Errorf("fault %d (%s): half done", k, where)
			sameImage(t, got, before)
		case err != nil:
			failed++
		}
		if n < k {
			total = n
			break
		}
	}
	if failed*step < 100 {
		t.Errorf("%d of %d faults failed the change: the test does not reach what it should", failed, total)
	}
}

// equal reports whether two images are the same.
func equal(a, b map[string]string) bool { return reflect.DeepEqual(a, b) }

// A stage that cannot be deleted does not undo a change that is done; the next
// change deletes it.
func TestStageLeftBehind(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	h.disk.fault = func(op, _ string) error {
		if op == "removeall" {
			return os.ErrPermission
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	must(t, g.commit(t, h))
	if got := image(t, dir); len(got) < 3 {
		t.Fatalf("no stage was left: %v", got)
	}
	h.disk.fault = nil
	g = overlay(t, h)
	must(t, g.write("f", "newer", 0))
	must(t, g.commit(t, h))
	if got := image(t, dir); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// When taking back fails too, the old files are kept. The error tells both
// causes and matches neither: nobody may run the call again on what is left.
func TestUndoFails(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	h, dir := planted(t, map[string]string{"a": "old", "b": "old"})
	failing := false
	h.disk.fault = func(op, name string) error {
		switch {
		case op == "sync" && name == ".":
			failing = true
			return first
		case failing && op == "rename":
			return second
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.rm("a"))
	err := g.commit(t, h)
	if !errors.Is(err, ErrTorn) || errors.Is(err, first) || errors.Is(err, second) {
		t.Errorf("apply: %v", err)
	}
	if !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
		t.Errorf("causes not told: %v", err)
	}
	kept := false
	for p, content := range image(t, dir) {
		kept = kept || (strings.HasPrefix(p, reservedPrefix) && strings.HasSuffix(content, "old"))
	}
	if !kept {
		t.Error("the old file is lost")
	}
}

// A conflict that is found late, and cannot be taken back, is no conflict.
func TestUndoFailsAfterConflict(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/": "", "a": "1"})
	g := overlay(t, h)
	must(t, g.rm("a"))
	must(t, g.rm("d"))
	c, err := g.Change()
	must(t, err)
	renames := 0
	h.disk.fault = func(op, _ string) error {
		if op != "rename" {
			return nil
		}
		switch renames++; renames {
		case 1:
			must(t, overwriteAll(dir, "d/x", ""))
		case 2:
			return errors.New("injected")
		}
		return nil
	}
	if err := h.Apply(t.Context(), c); !errors.Is(err, ErrTorn) || errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
}

func TestApplyErrorNames(t *testing.T) {
	h, _ := planted(t, map[string]string{"f": "old"})
	for _, c := range []struct{ system, name error }{
		{fmt.Errorf("write: %w", syscall.ENOSPC), capabilities.ENOSPC},
		{errors.New("strange"), capabilities.EIO},
	} {
		h.disk.fault = func(op, _ string) error {
			if op == "write" {
				return c.system
			}
			return nil
		}
		g := overlay(t, h)
		must(t, g.write("f", "x", 0))
		if err := g.commit(t, h); !errors.Is(err, c.name) || !errors.Is(err, c.system) {
			t.Errorf("apply: %v, want %v", err, c.name)
		}
	}
}

func TestApplyContext(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	c, err := g.Change()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Apply(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: %v", err)
	}
	if got := image(t, dir); len(got) != 1 || !strings.HasSuffix(got["f"], " old") {
		t.Errorf("left: %v", got)
	}
}
