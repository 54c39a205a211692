package crash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/runtime"
)

var notesEach = flag.Int("notes", 30, "how many notes each of two writers adds to one file")

// adding is how a tool adds what can be counted.
type adding struct {
	program, tool string
	arguments     func(name string) any
	list          string // the tool that lists all
}

var additions = map[string]adding{
	"notes": {"notes", "add_note", func(name string) any {
		return map[string]string{"title": name, "body": "of two writers"}
	}, "list_notes"},
	"memory": {"memory", "create_entities", func(name string) any {
		return map[string]any{"entities": []any{map[string]any{"name": name, "entityType": "note", "observations": []string{}}}}
	}, "read_graph"},
}

// addAll adds so many, each again until it is done, and returns how often a call
// was given up because others were in its way, and because its time was over.
func (a adding) addAll(ctx context.Context, w *world, prefix string, n int) (givenUp, late int, err error) {
	for i := range n {
		arguments, err := json.Marshal(a.arguments(fmt.Sprintf("%s-%d.", prefix, i)))
		if err != nil {
			return givenUp, late, err
		}
		for {
			r := w.pkg.Call(ctx, runtime.Request{Tool: a.tool, Arguments: arguments})
			if r.Outcome == runtime.OK && r.Err == nil {
				break
			}
			switch r.Outcome {
			case runtime.Conflict:
				givenUp++
			case runtime.Timeout:
				late++
			default:
				return givenUp, late, fmt.Errorf("%s: %s, %w", a.tool, r.Outcome, r.Err)
			}
		}
	}
	return givenUp, late, nil
}

// check demands that all that two writers added is there once.
func (a adding) check(t *testing.T, w *world, n int) {
	t.Helper()
	r := w.pkg.Call(t.Context(), runtime.Request{Tool: a.list})
	if r.Outcome != runtime.OK {
		t.Fatalf("%s: %s, %v", a.list, r.Outcome, r.Err)
	}
	text := textOf(r)
	missing := 0
	for _, prefix := range []string{"x", "y"} {
		for i := range n {
			if strings.Count(text, fmt.Sprintf("%s-%d.", prefix, i)) != 1 {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d are missing, or there twice", missing, 2*n)
	}
}

// writeMany is a process that is one of two writers.
func writeMany(ctx context.Context, j job, w *world, _ *steps) error {
	givenUp, late, err := additions[j.Place.Program].addAll(ctx, w, j.Args[0], j.Count)
	fmt.Println("conflicts", w.conflicts.Load(), givenUp, late)
	return err
}

// TestTwoWriters has two writers add to one file, in one process and in two.
func TestTwoWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for _, program := range []string{"notes", "memory"} {
		a := additions[program]
		for kind, p := range map[string]place{
			"host folder":    folder(t, t.TempDir(), "data"),
			"managed volume": {State: t.TempDir()},
		} {
			p.Program = program
			t.Run(program+" in one process, "+kind, func(t *testing.T) { a.inOne(t, p) })
		}
		for kind, p := range map[string]place{
			"host folder":    folder(t, t.TempDir(), "data"),
			"managed volume": {State: t.TempDir()},
		} {
			p.Program = program
			t.Run(program+" in two processes, "+kind, func(t *testing.T) { a.inTwo(t, p) })
		}
	}
}

func (a adding) inOne(t *testing.T, p place) {
	w := p.opened(t, hooks{})
	began := time.Now()
	var givenUp, late [2]int
	sideBySide(2, func(i int) {
		var err error
		if givenUp[i], late[i], err = a.addAll(t.Context(), w, "xy"[i:i+1], *notesEach); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d calls in %s, %d runs met a conflict, %d calls were given up for that and %d for their time",
		2**notesEach, time.Since(began).Round(time.Millisecond), w.conflicts.Load(), givenUp[0]+givenUp[1], late[0]+late[1])
	a.check(t, w, *notesEach)
}

func (a adding) inTwo(t *testing.T, p place) {
	w := p.opened(t, hooks{})
	began := time.Now()
	sideBySide(2, func(i int) {
		ok := start(t, job{Place: p, Do: "write", Count: *notesEach, Args: []string{"xy"[i : i+1]}}).wait(func(f []string) {
			t.Logf("%s runs met a conflict, %s calls were given up for that and %s for their time", f[1], f[2], f[3])
		})
		if !ok {
			t.Error("a writer did not end well")
		}
	})
	t.Logf("%d calls in %s", 2**notesEach, time.Since(began).Round(time.Millisecond))
	a.check(t, w, *notesEach)
}

// TestSlowWriter has a slow call and others that change the same in the meantime,
// over and over. They do not keep it from ending.
func TestSlowWriter(t *testing.T) {
	w := place{Program: "steps", State: t.TempDir()}.opened(t, hooks{})
	ctx, stop := context.WithCancel(t.Context())
	increment := operation{Do: "increment", Name: "n", N: 1}
	changed, others := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, r := w.call(ctx, "do", []operation{increment}, runtime.Notify{}); r.Outcome == runtime.OK {
				n++
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		others <- n
	}()
	runs := 0
	wait := func(runtime.LogMessage) { // for changes: two, as the first may be one from before
		runs++
		enough := make(<-chan time.Time)
		if runs > 2 { // the others have to wait
			enough = time.After(400 * time.Millisecond)
		}
		for range 2 {
			select {
			case <-changed:
			case <-enough:
				return
			}
		}
	}
	_, r := w.call(t.Context(), "do", []operation{increment, {Do: "wait"}}, runtime.Notify{Log: wait})
	stop()
	n := <-others
	t.Logf("%d runs of the slow call, %d calls of others, %d conflicts", runs, n, w.conflicts.Load())
	if r.Outcome != runtime.OK {
		t.Errorf("slow call: %s, %v", r.Outcome, r.Err)
	}
	if saw, _ := w.must(t, "look", operation{Do: "get", Name: "n"}); saw[0] != fmt.Sprint("=", n+1) {
		t.Errorf("counted %s after %d calls", saw[0], n+1)
	}
	if w.conflicts.Load() < 2 {
		t.Error("the others were in nobody's way")
	}
}
