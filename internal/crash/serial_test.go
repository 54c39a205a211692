package crash

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/runtime"
)

var serialCalls = flag.Int("serial", 40, "how many random calls each of six clients makes, at each kind of place")

// faulty fails some of the steps of commits while it is armed.
type faulty struct {
	mu     sync.Mutex
	random *rand.Rand
	one    int // of so many steps fails; 0: none
	count  map[string]int
}

func (f *faulty) step(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.one == 0 || what == "lstat" || f.random.IntN(f.one) != 0 {
		return nil
	}
	f.count[what]++
	errno := syscall.EIO
	if f.random.IntN(2) == 0 {
		errno = syscall.ENOSPC
	}
	return &fs.PathError{Op: what, Path: "disk", Err: errno}
}

func (f *faulty) arm(one int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.one = one
}

// randomCall returns a few operations on few names, so that calls meet.
func randomCall(r *rand.Rand, id string) (tool string, ops []operation) {
	file := func() string { return fmt.Sprintf("%s/f%d", volumesOfGuest[r.IntN(2)], r.IntN(3)) }
	key := func() string { return fmt.Sprintf("k%d", r.IntN(4)) }
	reads := []func() operation{
		func() operation { return operation{Do: "read", Name: file()} },
		func() operation { return operation{Do: "list", Name: volumesOfGuest[r.IntN(2)]} },
		func() operation { return operation{Do: "get", Name: key()} },
		func() operation { return operation{Do: "scan", Name: key(), To: key(), N: r.IntN(4)} },
	}
	writes := []func() operation{
		func() operation { return operation{Do: "write", Name: file(), Text: id} },
		func() operation { return operation{Do: "grow", Name: file(), Text: id} },
		func() operation { return operation{Do: "copy", Name: file(), To: file()} },
		func() operation { return operation{Do: "remove", Name: file()} },
		func() operation { return operation{Do: "put", Name: key(), Text: id} },
		func() operation { return operation{Do: "append", Name: key(), Text: id} },
		func() operation { return operation{Do: "delete", Name: key()} },
		func() operation { return operation{Do: "increment", Name: "n", N: 1 + r.IntN(3)} },
	}
	tool = "do"
	if r.IntN(4) == 0 {
		tool, writes = "look", reads
	}
	for range 1 + r.IntN(5) {
		from := writes
		if r.IntN(2) == 0 {
			from = reads
		}
		ops = append(ops, from[r.IntN(len(from))]())
	}
	if r.IntN(12) == 0 {
		ops = append(ops, operation{Do: "fail"})
	}
	return tool, ops
}

// TestSerial makes random calls at once. There has to be an order in which they
// would have seen the same one after another, in which each comes after all that
// were answered before it was made; and those that failed are in none.
func TestSerial(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for name, p := range map[string]place{
		"host folder":     folder(t, t.TempDir(), "disk"),
		"managed volumes": {Program: "steps", State: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) { serial(t, p) })
	}
}

// serial makes calls without faults and with them.
func serial(t *testing.T, p place) {
	p.Program = "steps"
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := &faulty{random: rand.New(rand.NewPCG(seed, 0)), count: map[string]int{}}
	w := p.opened(t, hooks{step: f.step})
	h := &history{began: time.Now(), outcomes: map[runtime.Outcome]int{}}
	var mu sync.Mutex
	const clients = 6
	for round, one := range []int{0, 40} {
		f.arm(one)
		sideBySide(clients, func(c int) {
			r := rand.New(rand.NewPCG(seed, uint64(1+c+clients*round)))
			for i := range *serialCalls / 2 {
				name, ops := randomCall(r, fmt.Sprintf("%d.%d.%d;", round, c, i))
				from := time.Since(h.began)
				saw, result := w.call(t.Context(), name, ops, runtime.Notify{})
				to := time.Since(h.began)
				mu.Lock()
				h.made(c, ops, from, to, saw, result)
				mu.Unlock()
				if !tolerated(result) {
					t.Errorf("%s, %v, %+v: %s", result.Outcome, result.Err, result.Violation, textOf(result))
				}
			}
		})
		f.arm(0)
		all := []operation{{Do: "scan"}}
		for _, v := range volumesOfGuest {
			all = append(all, operation{Do: "list", Name: v})
			for i := range 3 {
				all = append(all, operation{Do: "read", Name: fmt.Sprintf("%s/f%d", v, i)})
			}
		}
		from := time.Since(h.began)
		saw, result := w.must(t, "look", all...)
		h.made(clients, all, from, time.Since(h.began), saw, result)
	}
	began := time.Now()
	h.check(t)
	t.Logf("%d calls in %s: %v, %d of them unknown, %d conflicts; faults: %v; order found in %s", len(h.calls), began.Sub(h.began).Round(time.Millisecond),
		h.outcomes, h.unknown, w.conflicts.Load(), f.count, time.Since(began).Round(time.Millisecond))
	if h.outcomes[runtime.OK] == 0 || h.outcomes[runtime.HostError] == 0 || h.outcomes[runtime.ToolError] == 0 || w.conflicts.Load() == 0 {
		t.Error("the calls do not reach what they should")
	}
}

// tolerated reports whether a call ended in a way that it may, with these faults.
func tolerated(r *runtime.Result) bool {
	switch r.Outcome {
	case runtime.OK: // what could not be put in place yet is told beside
	case runtime.ToolError: // asked for, or an operation of the guest's that failed
	case runtime.Conflict:
	case runtime.HostError:
		return errors.Is(r.Err, syscall.EIO) || errors.Is(r.Err, syscall.ENOSPC)
	case runtime.Violation, runtime.Refused, runtime.Timeout, runtime.Limit:
		return false
	}
	return true
}
