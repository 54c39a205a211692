package volume

import (
	"context"
	"encoding/json"
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
func TestApplyFaults(t *testing.T) {
	injected := errors.New("injected")
	template := t.TempDir()
	plant(t, template, lively)
	after := t.TempDir()
	plant(t, after, livelyAfter)
	want := image(t, after)
	failed, total := 0, 0
	for k := 1; ; k++ {
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(template)))
		before := image(t, dir)
		h := open(t, dir)
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
	if failed < 100 {
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

// When taking back fails too, the old files are kept, and the error is both.
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
	if err := g.commit(t, h); !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("apply: %v", err)
	}
	kept := false
	for p, content := range image(t, dir) {
		kept = kept || (strings.HasPrefix(p, reservedPrefix) && strings.HasSuffix(content, "old"))
	}
	if !kept {
		t.Error("the old file is lost")
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

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(*guest) error
		// meanwhile is what somebody else does to the folder.
		meanwhile func(dir string) error
		conflict  bool
	}{
		{"same size, content read", func(g *guest) error { _, err := g.cat("f"); return err }, overwrite("f", "OLD"), true},
		{"same size, same time", func(g *guest) error { _, err := g.cat("f"); return err }, forge("f", "OLD"), true},
		{"looked at only", func(g *guest) error { _, err := g.node("f", true); return err }, overwrite("f", "OLD"), true},
		{"absence seen", func(g *guest) error { _, err := g.Walk(g.Root(), "new", true); return err }, overwrite("new", ""), true},
		{"absence below seen", func(g *guest) error { _, err := g.Walk(g.Root(), "d/new", true); return err }, overwrite("d/new", ""), true},
		{"listed, name added", func(g *guest) error { _, err := g.List(g.Root()); return err }, overwrite("new", ""), true},
		{"listed, name removed", func(g *guest) error { _, err := g.List(g.Root()); return err }, removed("f"), true},
		{"listed, kind changed", func(g *guest) error { _, err := g.List(g.Root()); return err }, func(dir string) error {
			return errors.Join(removed("f")(dir), os.Mkdir(filepath.Join(dir, "f"), 0o755))
		}, true},
		{"listed, content changed", func(g *guest) error { _, err := g.List(g.Root()); return err }, overwrite("f", "OLD"), false},
		{"made what appears", func(g *guest) error { return g.write("new", "mine", 0) }, overwrite("new", "theirs"), true},
		{"removed what changed", func(g *guest) error { return g.rm("f") }, overwrite("f", "OLD"), true},
		{"removed directory that got a file", func(g *guest) error { return g.rm("e") }, overwrite("e/x", ""), true},
		{"moved directory whose file changed", func(g *guest) error { return g.mv("d", "n") }, overwrite("d/f", "OLD"), true},
		{"moved directory that got a file", func(g *guest) error { return g.mv("d", "n") }, overwrite("d/new", ""), true},
		{"directory gone", func(g *guest) error { _, err := g.cat("d/f"); return err }, removed("d"), true},
		{"mode changed", func(g *guest) error { _, err := g.cat("f"); return err }, func(dir string) error {
			return os.Chmod(filepath.Join(dir, "f"), 0o600)
		}, true},
		{"something else in the directory", func(g *guest) error { return g.write("d/f", "mine", 0) }, overwrite("d/other", ""), false},
		{"something else", func(g *guest) error { return g.write("f", "mine", 0) }, overwrite("d/f", "OLD"), false},
		{"link changed", func(g *guest) error { _, err := g.cat("l"); return err }, func(dir string) error {
			return errors.Join(removed("l")(dir), os.Symlink("d/f", filepath.Join(dir, "l")))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, dir := planted(t, map[string]string{"f": "old", "d/f": "old", "e/": "", "l": "->f"})
			g := overlay(t, h)
			must(t, c.call(g))
			change, err := g.Change()
			must(t, err)
			must(t, h.Check(t.Context(), change))
			must(t, c.meanwhile(dir))
			theirs := image(t, dir)
			for what, err := range map[string]error{
				"check": h.Check(t.Context(), change), "apply": h.Apply(t.Context(), change),
			} {
				if errors.Is(err, ErrConflict) != c.conflict || (err != nil) != c.conflict {
					t.Errorf("%s: %v", what, err)
				}
			}
			if c.conflict {
				sameImage(t, image(t, dir), theirs)
			}
		})
	}
}

func overwrite(name, content string) func(string) error {
	return func(dir string) error {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(content)
		return errors.Join(err, f.Close())
	}
}

// forge changes a file in place and puts its modification time back.
func forge(name, content string) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(overwrite(name, content)(dir), os.Chtimes(path, time.Time{}, fi.ModTime()))
	}
}

func removed(name string) func(string) error {
	return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
}

// What changes while new contents are being prepared is seen before anything
// is put in place.
func TestConflictWhilePreparing(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	h.disk.fault = func(op, _ string) error {
		if op == "write" {
			return overwrite("f", "OLD")(dir)
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.write("f", "new", 0))
	if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
	if got := image(t, dir); len(got) != 1 || !strings.HasSuffix(got["f"], " OLD") {
		t.Errorf("left: %v", got)
	}
}

// Two changes that read and write the same file: the second one conflicts, and
// nothing is lost, also through two HostDirs on one folder.
func TestApplyConcurrently(t *testing.T) {
	h1, dir := planted(t, map[string]string{"count": ""})
	stores := []*HostDir{h1, open(t, dir)}
	const calls = 40
	done := make(chan error, calls)
	for i := range calls {
		go func() {
			h := stores[i%2]
			for {
				g := &guest{New(h, Options{Budget: ample()})}
				c, err := increment(g)
				if err == nil {
					err = h.Apply(context.Background(), c)
				}
				_ = g.Close()
				if !errors.Is(err, ErrConflict) {
					done <- err
					return
				}
			}
		}()
	}
	for range calls {
		must(t, <-done)
	}
	b, err := os.ReadFile(filepath.Join(dir, "count"))
	if err != nil || len(b) != calls {
		t.Errorf("%d calls counted, %v", len(b), err)
	}
}

// increment appends one byte to the file "count".
func increment(g *guest) (*Change, error) {
	n, err := g.node("count", true)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrConflict // seen in the middle of another change
	}
	if err != nil {
		return nil, err
	}
	info, err := g.Info(n)
	if err != nil {
		return nil, err
	}
	if err := g.write("count", "x", info.Size); err != nil {
		return nil, err
	}
	return g.Change()
}

func TestApplyRefusesInvalid(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	for _, s := range []Step{
		{Action: ActRemove, Path: "../x"},
		{Action: ActRemove, Path: "."},
		{Action: ActRemove, Path: ""},
		{Action: ActMkdir, Path: "/x"},
		{Action: ActMkdir, Path: "x", Mode: os.ModeSetuid | 0o755},
		{Action: ActPut, Path: "x", Base: "../secret", Keep: 1, Size: 1},
		{Action: ActPut, Path: "x", Keep: 1, Size: 1},
		{Action: ActPut, Path: "x", Size: -1},
		{Action: ActPut, Path: "x", Size: 1, Extents: []Extent{{Offset: 1, Data: []byte("x")}}},
		{Action: ActLink, Path: "x"},
		{Action: "chown", Path: "f"},
	} {
		if err := h.Apply(t.Context(), &Change{Steps: []Step{s}}); !errors.Is(err, capabilities.EINVAL) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if got := image(t, dir); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// A change can be applied after it went through JSON, with the same outcome.
func TestChangeJSON(t *testing.T) {
	h, _ := planted(t, lively)
	g := overlay(t, h)
	livelyCall(t, g)
	_, err := g.List(g.Root())
	must(t, err)
	c, err := g.Change()
	must(t, err)
	b, err := json.Marshal(c)
	must(t, err)
	var decoded Change
	must(t, json.Unmarshal(b, &decoded))
	if !reflect.DeepEqual(*c, decoded) {
		t.Errorf("decoded %+v\nwant %+v", decoded, *c)
	}
	if len(b) > 20000 {
		t.Errorf("%d bytes for a few small changes", len(b))
	}
}

// A change of a few bytes in a large file carries those bytes only.
func TestChangeIsSmall(t *testing.T) {
	h, dir := planted(t, nil)
	path := filepath.Join(dir, "large")
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Truncate(path, 1<<30))
	g := overlay(t, h)
	must(t, g.write("large", "0123456789", 1<<29+7))
	c, err := g.Change()
	must(t, err)
	b, err := json.Marshal(c)
	must(t, err)
	if len(b) > 2000 || len(c.Steps) != 1 || c.Steps[0].Keep != 1<<30 {
		t.Errorf("%d bytes: %.300s", len(b), b)
	}
	if bytes, _ := g.budget.Used(); bytes > 2*chunkSize {
		t.Errorf("%d bytes held", bytes)
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

func overwriteAll(dir, name, content string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
}

func BenchmarkReadSmallWriteCommit(b *testing.B) {
	h, _ := planted(b, map[string]string{"f": strings.Repeat("x", 4096)})
	for i := 0; b.Loop(); i++ {
		g := &guest{New(h, Options{Budget: ample()})}
		g.content(b, "f")
		must(b, g.write("f", strconv.Itoa(i), 100))
		must(b, g.commit(b, h))
		must(b, g.Close())
	}
}

// BenchmarkOverlay is what a call costs that reads a file, writes one, and is
// prepared, but not committed.
func BenchmarkOverlay(b *testing.B) {
	h, _ := planted(b, map[string]string{"f": strings.Repeat("x", 4096)})
	time.Sleep(2 * tick)
	b.ReportAllocs()
	for b.Loop() {
		g := &guest{New(h, Options{Budget: ample()})}
		g.content(b, "f")
		must(b, g.write("new", "hello", 0))
		_, err := g.Change()
		must(b, err)
		must(b, g.Close())
	}
}
