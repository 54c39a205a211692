package measure

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

// clock is a processor whose time goes on as the subjects say.
type clock struct {
	mu   sync.Mutex
	used time.Duration
}

func (c *clock) cpu() (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, nil
}

func (c *clock) use(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used += d
}

// Each subject runs once a round, first in another round than the others.
func TestTurns(t *testing.T) {
	var c clock
	var order []string
	subject := func(name string) Subject {
		return Subject{
			Name: name, CPU: c.cpu,
			Call: func(context.Context, int, int) error {
				order = append(order, name)
				c.use(time.Millisecond)
				return nil
			},
			Took: func(int) time.Duration { return time.Second },
		}
	}
	all, err := Run(t.Context(), []Subject{subject("a"), subject("b"), subject("c")}, Options{Rounds: 3, Callers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "a", "b", "c", "b", "c", "a", "c", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v: warm-up, then rotated", order, want)
	}
	for _, s := range all {
		if len(s.Rounds) != 3 || s.Of(P50) != time.Second || s.Of(CPU) != time.Millisecond {
			t.Errorf("%s: %d rounds, p50 %v, CPU %v", s.Name, len(s.Rounds), s.Of(P50), s.Of(CPU))
		}
	}
}

// A subject that fails runs no further and says so; the others go on.
func TestFailure(t *testing.T) {
	var c clock
	fails := Subject{Name: "fails", CPU: c.cpu, Call: func(_ context.Context, _, n int) error {
		if n == 2 {
			return errBroken
		}
		return nil
	}}
	works := Subject{Name: "works", CPU: c.cpu, Call: func(context.Context, int, int) error { return nil }}
	all, err := Run(t.Context(), []Subject{fails, works}, Options{Rounds: 4, Callers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(all[0].Err, errBroken) || len(all[0].Rounds) != 1 {
		t.Errorf("the subject that fails: %d rounds, error %v", len(all[0].Rounds), all[0].Err)
	}
	if all[1].Err != nil || len(all[1].Rounds) != 4 {
		t.Errorf("the other: %d rounds, error %v", len(all[1].Rounds), all[1].Err)
	}
}

// Each caller makes the least number of calls and counts its own.
func TestCallers(t *testing.T) {
	var c clock
	var mu sync.Mutex
	seen := map[[2]int]int{}
	s := Subject{Name: "s", CPU: c.cpu, Call: func(_ context.Context, caller, n int) error {
		mu.Lock()
		defer mu.Unlock()
		seen[[2]int{caller, n}]++
		return nil
	}}
	all, err := Run(t.Context(), []Subject{s}, Options{Rounds: 1, Callers: 3, Least: 5})
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Rounds[0].Calls != 15 {
		t.Errorf("%d calls, want 15", all[0].Rounds[0].Calls)
	}
	for caller := range 3 {
		for n := range 6 { // one to warm up
			if seen[[2]int{caller, n}] != 1 {
				t.Errorf("call %d of caller %d was made %d times", n, caller, seen[[2]int{caller, n}])
			}
		}
	}
}

func TestQuantiles(t *testing.T) {
	var took []time.Duration
	for i := range 101 {
		took = append(took, time.Duration(100-i))
	}
	r := Quantiles(took)
	if r.P10 != 10 || r.P50 != 50 || r.P90 != 90 || r.P99 != 99 || r.Calls != 101 {
		t.Errorf("%+v", r)
	}
	if none := Quantiles(nil); none != (Round{}) {
		t.Errorf("of nothing: %+v", none)
	}
}

// The ratio is the median of the rounds' ratios, not the ratio of medians.
func TestRatio(t *testing.T) {
	a := Series{Rounds: []Round{{P50: 10}, {P50: 200}, {P50: 30}}}
	b := Series{Rounds: []Round{{P50: 5}, {P50: 50}, {P50: 30}}}
	r := a.To(&b, P50)
	if r.Median != 2 || r.Low != 2 || r.High != 4 || r.Rounds != 3 {
		t.Errorf("%+v", r)
	}
	if i := r.Inverse(); i.Median != 0.5 || i.Low != 0.25 {
		t.Errorf("inverse %+v", i)
	}
	if none := a.To(&Series{}, P50); none.Rounds != 0 {
		t.Errorf("to nothing: %+v", none)
	}
	if m := Median([]float64{4, 1, 3, 2}); math.Abs(m-2.5) > 1e-9 {
		t.Errorf("median %v", m)
	}
}

// The time of this process is found in /proc too, to a few milliseconds.
func TestTree(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	for {
		now, err := Self()
		if err != nil {
			t.Fatal(err)
		}
		if now-self > 50*time.Millisecond {
			break
		}
	}
	tree, err := Tree(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if tree < 50*time.Millisecond {
		t.Errorf("tree %v, although 50 ms were used", tree)
	}
	m, err := Resident(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if m.PSS < 1<<20 || m.Private < 1<<20 || m.Private > m.PSS {
		t.Errorf("memory %+v", m)
	}
}
