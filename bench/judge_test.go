package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var judged = flag.Int("judged", 1, "size of the files that are judged, in MB")

// format is a file of records, as a program writes it.
type format struct {
	name                 string
	record               func(int) string
	before, between, end string
}

func jsonRecord(i int) string {
	return fmt.Sprintf(`{"id":%d,"title":"Note number %d","text":"Remember the milk, and \"something\" else.","tags":["home","todo"],"created_at":"2026-11-30T04:05:%02d.123456Z","done":false,"weight":%d.25}`, i, i, i%60, i%1000)
}

func csvRecord(i int) string {
	return fmt.Sprintf(`%d,"Note number %d","Remember the milk, and ""something"" else.",2026-11-30T04:05:%02d.123456Z,false,%d.25`, i, i, i%60, i%1000)
}

var formats = []format{
	{"JSON Lines", jsonRecord, "", "\n", "\n"},
	{"JSON", jsonRecord, "[\n", ",\n", "\n]\n"},
	{"CSV", csvRecord, "id,title,text,created_at,done,weight\n", "\n", "\n"},
}

// text returns the records of the ranges.
func (f format) text(ranges ...[2]int) string {
	var b strings.Builder
	b.WriteString(f.before)
	first := true
	for _, r := range ranges {
		for i := r[0]; i < r[1]; i++ {
			if !first {
				b.WriteString(f.between)
			}
			first = false
			b.WriteString(f.record(i))
		}
	}
	b.WriteString(f.end)
	return b.String()
}

// rewritten is a folder with a file, and a call that has written all of it anew.
func rewritten(t *testing.T, was, is string) (additive.Tree, func() error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "f"), []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := volume.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	o := volume.New(dir, volume.Options{Budget: &volume.Budget{Bytes: 1 << 32, Files: 10}})
	p, err := o.Walk(o.Root(), "f", true)
	if err == nil {
		err = o.Truncate(p.Node, 0)
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(written{o, p.Node}, 0), strings.NewReader(is))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.Change()
	if err != nil {
		t.Fatal(err)
	}
	return additive.Tree{Path: "/data", Base: dir, Result: o.Result(), Steps: c.Steps}, o.Close
}

// written is a file of an overlay as [io.WriterAt].
type written struct {
	o *volume.Overlay
	n *volume.Node
}

func (w written) WriteAt(b []byte, off int64) (int, error) { return w.o.WriteAt(w.n, b, off) }

// TestJudge prints how fast the judge of destructiveHint: false reads what a call
// has written anew: one in a thousand records is new, at the end or in front.
func TestJudge(t *testing.T) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nfile of %d MB\tnew records\tms\tCPU ms\tMB/s\tof CPU\tallocated MB\t\n", *judged)
	for _, f := range formats {
		n := *judged * 1_000_000 / (len(f.record(100_000)) + len(f.between))
		more := [2]int{n, n + max(n/1000, 1)}
		for _, c := range []struct {
			place string
			is    string
		}{{"at the end", f.text([2]int{0, n}, more)}, {"in front", f.text(more, [2]int{0, n})}} {
			tree, done := rewritten(t, f.text([2]int{0, n}), c.is)
			var took, cpu []time.Duration
			allocated := uint64(0)
			for range max(*rounds, 1) {
				began := processTime()
				d, bytes := judge(t, tree)
				took, cpu, allocated = append(took, d), append(cpu, processTime()-began), bytes
			}
			ms, cpuMS := milliseconds(middle(took)), milliseconds(middle(cpu))
			kB := float64(len(c.is)) / 1e3
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", f.name, c.place, ms, cpuMS, kB/ms, kB/cpuMS, float64(allocated)/1e6)
			if err := done(); err != nil {
				t.Error(err)
			}
		}
	}
	w.Flush()
}

func judge(t *testing.T, tree additive.Tree) (took time.Duration, allocated uint64) {
	t.Helper()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	began := time.Now()
	report, err := additive.Judge(t.Context(), []additive.Tree{tree}, additive.Rules{})
	took = time.Since(began)
	goruntime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if l := report.Loss(); l != nil || len(report.Changed) != 1 {
		t.Fatalf("lost %v of %v", l, report.Changed)
	}
	return took, after.TotalAlloc - before.TotalAlloc
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
