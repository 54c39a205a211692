package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	rounds  = flag.Int("rounds", 1, "rounds of the report, each cell once a round")
	each    = flag.Duration("each", 20*time.Millisecond, "how long a cell runs in a round")
	callers = flag.String("callers", "1", "numbers of concurrent callers, separated by commas")
	gogc    = flag.String("gogc", "400", "settings of GOGC to compare, separated by commas")
)

// sample is what one cell cost in all rounds.
type sample struct {
	took    []time.Duration // of each call
	calls   int
	cpu     time.Duration // of the process: client and server
	bytes   uint64
	mallocs uint64
}

// TestReport prints what each cell costs beside the others: the cells take
// turns, so that a busy moment of the machine falls on all of them.
func TestReport(t *testing.T) {
	cs := cells(t)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, percent := range numbers(t, *gogc) {
		for _, n := range numbers(t, *callers) {
			debug.SetGCPercent(percent)
			samples := make([]sample, len(cs))
			for round := range *rounds {
				for i := range cs {
					at := (i + round) % len(cs)
					if err := samples[at].measure(t, cs[at], n); err != nil {
						t.Fatalf("%s: %v", cs[at], err)
					}
				}
			}
			fmt.Fprintf(os.Stdout, "\nGOGC %d, %d callers, %d rounds of %v, %s, GOMAXPROCS %d\n", percent, n, *rounds, *each, goruntime.Version(), goruntime.GOMAXPROCS(0))
			print(cs, samples)
		}
	}
}

func numbers(t *testing.T, list string) (out []int) {
	t.Helper()
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// measure runs a cell for one round.
func (s *sample) measure(t *testing.T, c *cell, callers int) error {
	if err := c.run(t.Context()); err != nil { // connections and caches
		return err
	}
	goruntime.GC()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	cpu, until := processTime(), time.Now().Add(*each)
	var mu sync.Mutex
	var work sync.WaitGroup
	var fault error
	for range callers {
		work.Go(func() {
			var took []time.Duration
			var err error
			for err == nil && (len(took) == 0 || time.Now().Before(until)) {
				began := time.Now()
				err = c.run(t.Context())
				took = append(took, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			s.took = append(s.took, took...)
			s.calls += len(took)
			fault = errors.Join(fault, err)
		})
	}
	work.Wait()
	s.cpu += processTime() - cpu
	goruntime.ReadMemStats(&after)
	s.bytes += after.TotalAlloc - before.TotalAlloc
	s.mallocs += after.Mallocs - before.Mallocs
	return fault
}

func (s *sample) quantile(q float64) time.Duration {
	slices.Sort(s.took)
	return s.took[int(q*float64(len(s.took)-1))]
}

// print prints the samples, each with its ratio to the native tool at the same
// level.
func print(cs []*cell, samples []sample) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "level\ttool\tkind\tcalls\tp50 µs\tp99 µs\tCPU µs\tkB\tmallocs\tp50 to native\tCPU to native\t")
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	for i, c := range cs {
		s := &samples[i]
		base := slices.IndexFunc(cs, func(o *cell) bool { return o.level == c.level && o.tool == c.tool && o.kind == "native" })
		n := &samples[base]
		perCall := func(s *sample) float64 { return us(s.cpu) / float64(s.calls) }
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%d\t%d\t%.1f\t%.1f\t\n", c.level, c.tool, c.kind, s.calls,
			us(s.quantile(0.5)), us(s.quantile(0.99)), perCall(s), s.bytes/uint64(s.calls)/1024, s.mallocs/uint64(s.calls),
			us(s.quantile(0.5))/us(n.quantile(0.5)), perCall(s)/perCall(n))
	}
	w.Flush()
}
