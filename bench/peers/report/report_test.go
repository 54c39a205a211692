package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// series has rounds whose calls took so long, at the middle.
func series(name string, p50 ...time.Duration) *measure.Series {
	s := &measure.Series{Name: name}
	for _, d := range p50 {
		s.Rounds = append(s.Rounds, measure.Round{P10: d / 2, P50: d, P90: 2 * d, P99: 3 * d, Calls: 10, Wall: 10 * d, CPU: 5 * d})
	}
	return s
}

func results(rows ...Row) *Results {
	return &Results{
		Machine: Machine{GOMAXPROCS: 2},
		Tables:  []*Table{{ID: EngineTable("echo", 1), Title: "Calls", Base: Native, Rows: rows}},
	}
}

// Each kind of goal is met, missed and without a figure.
func TestVerdicts(t *testing.T) {
	const µs = time.Microsecond
	engine := EngineTable("echo", 1)
	image, other := Row{Name: CImage, Series: series(CImage, 4*µs, 6*µs, 5*µs)}, Row{Name: CNew, Series: series(CNew, 400*µs, 600*µs, 500*µs)}
	for _, c := range []struct {
		what  string
		rows  []Row
		judge judge
		want  Verdict
		text  string
	}{
		{"a figure", []Row{image}, atMost(engine, CImage, "p50", measure.P50, 5*µs), Met, CImage + ": p50 5.00 µs"},
		{"a figure that is too much", []Row{image}, atMost(engine, CImage, "p50", measure.P50, 5*µs-1), NotMet, CImage + ": p50 5.00 µs"},
		{"no row", nil, atMost(engine, CImage, "p50", measure.P50, 5*µs), NotMeasured, CImage + ": no such row"},
		{"a row that is not here", []Row{{Name: CImage, Missing: "no compiler"}}, atMost(engine, CImage, "p50", measure.P50, 5*µs), NotMeasured, CImage + ": no compiler"},
		{"a row that failed", []Row{{Name: CImage, Series: &measure.Series{Err: errors.New("broken")}}}, atMost(engine, CImage, "p50", measure.P50, 5*µs), NotMeasured, "broken"},
		{"a ratio", []Row{image, other}, ratio(engine, CImage, CNew, "p50", measure.P50, 0.01), Met, "p50 x0.01 (x0.01–x0.01)"},
		{"a ratio that is too much", []Row{image, other}, ratio(engine, CImage, CNew, "CPU", measure.CPU, 0.009), NotMet, "CPU x0.01 (x0.01–x0.01)"},
		{"times", []Row{image, other}, times(engine, CImage, CNew, "p50", measure.P50, 100), Met, "p50 x100 (x100–x100)"},
		{"times that are too few", []Row{image, other}, times(engine, CImage, CNew, "p50", measure.P50, 101), NotMet, "p50 x100 (x100–x100)"},
		{"one misses, one has no figure", []Row{image}, join(
			atMost(engine, CImage, "p50", measure.P50, 0), atMost(engine, CNew, "p50", measure.P50, 0)), NotMet, CNew + ": no such row"},
		{"one is met, one has no figure", []Row{image}, join(
			atMost(engine, CImage, "p50", measure.P50, time.Second), atMost(engine, CNew, "p50", measure.P50, 0)), NotMeasured, CNew + ": no such row"},
	} {
		verdict, text := Goal{judge: c.judge}.Judge(results(c.rows...))
		if verdict != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%s: %s: %s; want %s: %s", c.what, verdict, text, c.want, c.text)
		}
	}
}

// Where nothing was measured no goal is met.
func TestNothing(t *testing.T) {
	for _, g := range Goals() {
		if verdict, why := g.Judge(&Results{}); verdict != NotMeasured || why == "" {
			t.Errorf("%s: %s, %q", g.What, verdict, why)
		}
	}
}

func TestIdle(t *testing.T) {
	r := &Results{Memory: []MemoryRow{
		{Name: SandboxdStdio, Memory: measure.Memory{PSS: 20 << 20, Private: 10 << 20}},
		{Name: NodeStdio, Memory: measure.Memory{PSS: 60 << 20, Private: 20 << 20}},
	}}
	if verdict, text := (Goal{judge: idle(3)}).Judge(r); verdict != NotMet || text != "PSS 3.0x; private 2.0x" {
		t.Errorf("%s: %s", verdict, text)
	}
	if verdict, _ := (Goal{judge: idle(2)}).Judge(r); verdict != Met {
		t.Errorf("%s", verdict)
	}
}

// A table shows figures, ratios, and why there are none.
func TestMarkdown(t *testing.T) {
	r := results(
		Row{Name: Native, Series: series(Native, time.Microsecond, 2*time.Microsecond, 3*time.Microsecond)},
		Row{Name: CImage, Series: series(CImage, 4*time.Microsecond, 4*time.Microsecond, 4*time.Microsecond)},
		Row{Name: CNew, Missing: "a | in the reason"})
	residues, err := ReadResidue(strings.NewReader(`{"guest":"c","kind":"initialized","strategy":"image","method":"scan","callers":8,"wanted":100,"calls":90,"found":0,"seconds":1.5}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Residues = residues
	r.Curves = []*Curve{{ID: "grown", Title: "Growth", X: "bytes", Y: "p50 µs", Log: true, Lines: []Line{
		{Name: "one", Points: []Point{{0, 1}, {10, 2}, {100, 30.5}}}, {Name: "other", Missing: "not here"},
	}}}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| native Go handler | 1.00 µs | 2.00 µs | 4.00 µs | 6.00 µs | 1.00 µs | 500000 | base | base |",
		"| C reactor, image | 2.00 µs | 4.00 µs | 8.00 µs | 12.0 µs | 2.00 µs | 250000 | x2.00 (x2.00–x4.00) | x2.00 (x2.00–x4.00) |",
		`| C reactor, new instance | not measured here: a \| in the reason | | | | | | | |`,
		"![Growth](grown.svg)\n", "| bytes | 0 | 10 | 100 |", "| one, p50 µs | 1 | 2 | 30.5 |", "| other: not measured here: not here | | | |",
		"| c | initialized | image | scan | 8 | 90 of 100 | 0 |",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("the report has no %q:\n%s", want, b.String())
		}
	}
}

// A file that is cut off is an error.
func TestResidueCutOff(t *testing.T) {
	if all, err := ReadResidue(strings.NewReader("{\"guest\":\"c\"}\n{\"guest\":")); err == nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// A plot is drawn of what a logarithm can be taken of, and none of nothing.
func TestSVG(t *testing.T) {
	dir := t.TempDir()
	c := &Curve{ID: "grown", Log: true, Lines: []Line{{Name: "one", Points: []Point{{0, 1}, {10, 2}, {100, 3}}}, {Name: "other"}}}
	if err := c.SVG(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "grown.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "<svg") || !strings.Contains(string(b), "one") {
		t.Error("no plot with the line's name")
	}
	empty := &Curve{ID: "empty", Lines: []Line{{Name: "one"}}}
	if err := empty.SVG(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "empty.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plot of nothing: %v", err)
	}
}
