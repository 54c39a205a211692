package volume

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var errDead = errors.New("dead")

// mortal makes a folder and its journal die at the k-th operation, as a killed
// process does: nothing is done from then on. It returns how many were begun.
func mortal(h *HostDir, j *journal, k int) *int {
	n := 0
	dying := func() error {
		if n++; n >= k {
			return errDead
		}
		return nil
	}
	h.disk.fault = func(string, string) error { return dying() }
	j.fault = func(string) error { return dying() }
	return &n
}

// visible returns what of an image guests can see.
func visible(image map[string]string) map[string]string {
	image = maps.Clone(image)
	maps.DeleteFunc(image, func(path, _ string) bool { return hidden(path) })
	return image
}

// world is a folder with a journal that outlives processes.
type world struct {
	dir           string
	before, after map[string]string
	journal       *journal
	far           bool // all folders in it are on another file system
}

// far reports whether two paths are on two file systems, when all folders but the
// stage are on another one than the root.
func far(from, to string) bool {
	away := func(path string) bool { return strings.Contains(path, "/") && !hidden(path) }
	return away(from) != away(to)
}

func newWorld(t *testing.T, dir, template string, after map[string]string) *world {
	t.Helper()
	must(t, os.CopyFS(dir, os.DirFS(template)))
	return &world{dir: dir, before: image(t, dir), after: after, journal: &journal{name: "store"}}
}

// open opens the folder as a new process does.
func (w *world) open(t *testing.T) *HostDir {
	t.Helper()
	w.journal.fault = nil
	h, err := OpenJournaled(w.dir, w.journal)
	must(t, err)
	if w.far {
		h.disk.apart = far
	}
	return h
}

// committed reports whether the store has the change.
func (w *world) committed() bool { return w.journal.left()+len(w.journal.done) > 0 }

// commit runs the call and lets the process die at the k-th operation. It returns
// how many operations were begun.
func (w *world) commit(t *testing.T, k int) (int, error) {
	t.Helper()
	h := w.open(t)
	defer h.Close()
	g := &guest{New(h, Options{Budget: ample()})}
	defer g.Close()
	livelyCall(t, g)
	c, err := g.Change()
	must(t, err)
	n := mortal(h, w.journal, k)
	err = w.journal.commit(t.Context(), h, c)
	return *n, err
}

// settle lets a new process settle the folder and die at the k-th operation.
func (w *world) settle(t *testing.T, k int) (int, error) {
	t.Helper()
	h := w.open(t)
	defer h.Close()
	n := mortal(h, w.journal, k)
	err := h.Settle(t.Context())
	return *n, err
}

// check settles the folder: it is as before or, if the store has the change, as
// after. The next change then leaves no stage.
func (w *world) check(t *testing.T, where string) {
	t.Helper()
	h := w.open(t)
	defer h.Close()
	must(t, h.Settle(t.Context()))
	want := w.before
	if w.committed() {
		want = w.after
	}
	if got := visible(image(t, w.dir)); !equal(got, want) {
		t.Errorf("%s, committed %v:", where, w.committed())
		sameImage(t, got, want)
	}
	if w.journal.left() != 0 {
		t.Errorf("%s: still pending", where)
	}
	g := &guest{New(h, Options{Budget: ample()})}
	defer g.Close()
	must(t, g.write("later", "x", 0))
	c, err := g.Change()
	must(t, err)
	must(t, w.journal.commit(t.Context(), h, c))
	if names := h.Abandoned(); len(names) > 0 {
		t.Errorf("%s: abandoned %q", where, names)
	}
	for p := range image(t, w.dir) {
		if hidden(p) {
			t.Errorf("%s: left %s", where, p)
		}
	}
}

// livelyWorlds returns where worlds with the lively tree can be made.
func livelyWorlds(t *testing.T) func(name string) *world {
	t.Helper()
	template, end, scratch := t.TempDir(), t.TempDir(), quickDir(t)
	plant(t, template, lively)
	plant(t, end, livelyAfter)
	after := image(t, end)
	return func(name string) *world { return newWorld(t, filepath.Join(scratch, name), template, after) }
}

// TestCrash lets a process die before each of its operations in turn, and the one
// that takes over die at some of its own.
func TestCrash(t *testing.T) { testCrash(t, false) }

// TestCrashFar is TestCrash where nothing can be renamed.
func TestCrashFar(t *testing.T) { testCrash(t, true) }

func testCrash(t *testing.T, far bool) {
	worlds := livelyWorlds(t)
	committed, again, step := 0, 0, every(5)
	for k := 1; ; k += step {
		w := worlds(strconv.Itoa(k))
		w.far = far
		n, err := w.commit(t, k)
		if n < k {
			must(t, err)
			w.check(t, "alive")
			break
		}
		where := "dead at " + strconv.Itoa(k)
		if w.committed() {
			committed++
		}
		for range 2 {
			m := 1 + rand.IntN(150)
			if n, _ := w.settle(t, m); n >= m {
				again++
			}
			where += ", settling at " + strconv.Itoa(m)
		}
		w.check(t, where)
		must(t, os.RemoveAll(w.dir))
	}
	if committed*step < 100 || again*step < 50 {
		t.Errorf("dead after %d commits, and again %d times: the test does not reach what it should", committed, again)
	}
}

// TestCrashAgain lets the process that takes over die at each of its operations.
func TestCrashAgain(t *testing.T) {
	worlds := livelyWorlds(t)
	total, _ := worlds("all").commit(t, 1<<30)
	for _, k := range []int{total * 6 / 10, total * 7 / 10, total * 8 / 10} {
		for m := 1; ; m += every(5) {
			w := worlds(strconv.Itoa(k) + "-" + strconv.Itoa(m))
			_, _ = w.commit(t, k)
			if !w.committed() {
				t.Fatalf("dead at %d of %d: not committed", k, total)
			}
			n, err := w.settle(t, m)
			w.check(t, "dead at "+strconv.Itoa(k)+", again at "+strconv.Itoa(m))
			must(t, os.RemoveAll(w.dir))
			if n < m {
				must(t, err)
				break
			}
		}
	}
}

// TestFaultAfterCommit lets each operation fail once: the change is as good as
// made when it was committed, and the next who uses the folder finishes it.
func TestFaultAfterCommit(t *testing.T) {
	worlds := livelyWorlds(t)
	injected, pending, step := errors.New("injected"), 0, every(5)
	for k := 1; ; k += step {
		w := worlds(strconv.Itoa(k))
		h := w.open(t)
		g := &guest{New(h, Options{Budget: ample()})}
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
		err = w.journal.commit(t.Context(), h, c)
		h.disk.fault = nil
		if err != nil && (!errors.Is(err, injected) || errors.Is(err, ErrConflict) || errors.Is(err, ErrTorn)) {
			t.Errorf("fault %d (%s): %v", k, where, err)
		}
		if err != nil && w.committed() {
			pending++
			if w.journal.left() != 1 {
				t.Errorf("fault %d (%s): not pending", k, where)
			}
		}
		must(t, h.Settle(t.Context())) // in the same process
		want := w.before
		if w.committed() {
			want = w.after
		}
		if got := visible(image(t, w.dir)); !equal(got, want) {
			t.Errorf("fault %d (%s), %v:", k, where, err)
			sameImage(t, got, want)
		}
		must(t, g.Close())
		must(t, h.Close())
		w.check(t, "fault "+strconv.Itoa(k)+" "+where)
		must(t, os.RemoveAll(w.dir))
		if n < k {
			break
		}
	}
	if pending*step < 50 {
		t.Errorf("%d faults left the change pending: the test does not reach what it should", pending)
	}
}
