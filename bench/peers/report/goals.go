package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// Verdict on a goal.
type Verdict string

// The verdicts.
const (
	Met         Verdict = "met"
	NotMet      Verdict = "**not met**"
	NotMeasured Verdict = "not measured here"
)

// Finding is one figure that a goal is judged by.
type Finding struct {
	Text    string // the figure
	OK      bool
	Missing string // why there is none
}

// Goal is what was aimed at.
type Goal struct {
	What, Want string
	judge      func(*Results) []Finding
}

// Judge returns the verdict with the figures that it rests on. One figure that
// misses is enough for [NotMet], one that is missing for [NotMeasured].
func (g Goal) Judge(r *Results) (Verdict, string) {
	verdict := Met
	var texts []string
	for _, f := range g.judge(r) {
		switch {
		case f.Missing != "":
			if !slices.Contains(texts, f.Missing) {
				texts = append(texts, f.Missing)
			}
			if verdict == Met {
				verdict = NotMeasured
			}
		case !f.OK:
			verdict = NotMet
			fallthrough
		default:
			texts = append(texts, f.Text)
		}
	}
	return verdict, strings.Join(texts, "; ")
}

// Goals returns all goals.
func Goals() []Goal {
	engine := EngineTable("echo", 1)
	return []Goal{
		{"reset, at most 2 dirty pages", "≤ 2 µs", join(
			atMost(ResetTable, ResetRow(0), "p50", measure.P50, 2*time.Microsecond),
			atMost(ResetTable, ResetRow(1), "p50", measure.P50, 2*time.Microsecond),
			atMost(ResetTable, ResetRow(2), "p50", measure.P50, 2*time.Microsecond))},
		{"small C guest, call on a fresh state", "≤ 6 µs; ≥ 50x faster than a new instance; faster than Extism's reused instance", join(
			atMost(engine, CImage, "p50", measure.P50, 6*time.Microsecond),
			times(engine, CImage, CNew, "p50", measure.P50, 50),
			ratio(engine, CImage, ExtismC, "p50", measure.P50, 1))},
		{"Go and JSON, reactor", "≤ 1.4x the same call on a live instance; ≥ 40x faster than a new instance", join(
			ratio(engine, GoImage, GoLive, "p50", measure.P50, 1.4),
			times(engine, GoImage, GoNew, "p50", measure.P50, 40))},
		{"Go command, unmodified", "≤ 2 ms", atMost(engine, CommandImage, "p50", measure.P50, 2*time.Millisecond)},
		{"TypeScript tool", "≤ 1.3x live", missing("there is no runner for TypeScript yet; what there is stands in the table as: " + JSImage)},
		{"Python tool, unmodified CPython", "≤ 30 ms of CPU", atMost(engine, PythonImage, "CPU", measure.CPU, 30*time.Millisecond)},
		{"tools/call over HTTP, C guest against a native Go handler in the same server", "≤ 1.05x latency and CPU, at 1 and 16 callers", sameServer(HTTPC, 1.05)},
		{"the same, Go reactor", "≤ 1.25x", sameServer(HTTPGo, 1.25)},
		{"the same tools against a stock go-sdk server, CPU per call", "≤ 0.85x", stock(0.85)},
		{"against the reference servers on Node: read_text_file of 4 KB", "≤ 0.75x latency and CPU", join(
			ratio(MCPTable("read_text_file", Protocol, 1), SandboxdStdio, NodeStdio, "p50", measure.P50, 0.75),
			ratio(MCPTable("read_text_file", Protocol, 1), SandboxdStdio, NodeStdio, "CPU", measure.CPU, 0.75))},
		{"the same: search_files", "≥ 5x faster", times(MCPTable("search_files", Protocol, 1), SandboxdStdio, NodeStdio, "p50", measure.P50, 5)},
		{"the same: start to first tools/list", "≥ 5x faster", times(StartTable, SandboxdStdio, NodeStdio, "p50", measure.P50, 5)},
		{"the same: idle memory", "≥ 3x less", idle(3)},
		{"engine call against a process per call under bubblewrap, CPU: C guest", "≥ 200x less", times(engine, CImage, BwrapC, "CPU", measure.CPU, 200)},
		{"the same: Go guest", "≥ 30x less", times(engine, GoImage, BwrapGo, "CPU", measure.CPU, 30)},
		{"8 callers on 2 cores: p99 / p50 of a Go guest's call", "≤ 6", tail(GoImage, 6)},
		{"start to first tools/list with 20 approved packages, warm disk cache", "≤ 300 ms", atMost(StartTable, Sandboxd20, "p50", measure.P50, 300*time.Millisecond)},
		{"interruption: hot loop against one that cannot be interrupted", "≤ 1.15x", join(
			ratio(LoopTable("hashing"), LoopMetered, LoopPlain, "p50", measure.P50, 1.15),
			ratio(LoopTable("hashing"), LoopSandboxd, LoopPlain, "p50", measure.P50, 1.15))},
		{"interruption: Go call", "≤ 1.05x", ratio(engine, GoMetered, GoLive, "p50", measure.P50, 1.05)},
	}
}

type judge = func(*Results) []Finding

func join(parts ...judge) judge {
	return func(r *Results) (all []Finding) {
		for _, p := range parts {
			all = append(all, p(r)...)
		}
		return all
	}
}

func missing(why string) judge {
	return func(*Results) []Finding { return []Finding{{Missing: why}} }
}

// atMost judges a figure of one row.
func atMost(table, row, figure string, f measure.Figure, most time.Duration) judge {
	return func(r *Results) []Finding {
		s, why := r.Table(table).Row(row)
		if s == nil {
			return []Finding{{Missing: why}}
		}
		got := s.Of(f)
		return []Finding{{Text: fmt.Sprintf("%s: %s %s", row, figure, duration(got)), OK: got <= most}}
	}
}

// pair returns what a row is as a multiple of another of its table.
func (r *Results) pair(table, row, base string, f measure.Figure) (measure.Ratio, string) {
	s, why := r.Table(table).Row(row)
	if s == nil {
		return measure.Ratio{}, why
	}
	b, why := r.Table(table).Row(base)
	if b == nil {
		return measure.Ratio{}, why
	}
	q := s.To(b, f)
	if q.Rounds == 0 {
		return q, base + ": no round cost anything that could be told"
	}
	return q, ""
}

// ratio judges a row as a multiple of another.
func ratio(table, row, base, figure string, f measure.Figure, most float64) judge {
	return func(r *Results) []Finding {
		q, why := r.pair(table, row, base, f)
		if why != "" {
			return []Finding{{Missing: why}}
		}
		return []Finding{{Text: fmt.Sprintf("%s to %s: %s %s", row, base, figure, multiple(q)), OK: q.Median <= most}}
	}
}

// times judges how many times less a row costs than another.
func times(table, row, base, figure string, f measure.Figure, least float64) judge {
	return func(r *Results) []Finding {
		q, why := r.pair(table, row, base, f)
		if why != "" {
			return []Finding{{Missing: why}}
		}
		q = q.Inverse()
		return []Finding{{Text: fmt.Sprintf("%s to %s: %s %s", base, row, figure, multiple(q)), OK: q.Median >= least}}
	}
}

func sameServer(row string, most float64) judge {
	var all []judge
	for _, callers := range []int{1, 16} {
		table := SameServerTable(callers)
		all = append(all,
			ratio(table, row, HTTPNative, fmt.Sprintf("p50 with %d callers", callers), measure.P50, most),
			ratio(table, row, HTTPNative, fmt.Sprintf("CPU with %d callers", callers), measure.CPU, most))
	}
	return join(all...)
}

// stock judges the tools that leave nothing behind: an edit is synced to the disk
// by one side only.
func stock(most float64) judge {
	echo := MCPTable("echo", Protocol, 1)
	all := []judge{
		ratio(echo, SandboxdCStdio, StockStdio, "echo, CPU", measure.CPU, most),
		ratio(echo, SandboxdCHTTP, StockHTTP, "echo, CPU", measure.CPU, most),
	}
	for _, tool := range []string{"echo", "read_text_file", "list_directory", "search_files"} {
		table := MCPTable(tool, Protocol, 1)
		all = append(all,
			ratio(table, SandboxdStdio, StockStdio, tool+", CPU", measure.CPU, most),
			ratio(table, SandboxdHTTP, StockHTTP, tool+", CPU", measure.CPU, most))
	}
	return join(all...)
}

func idle(least float64) judge {
	return func(r *Results) []Finding {
		ours, theirs := r.memory(SandboxdStdio), r.memory(NodeStdio)
		for _, m := range []MemoryRow{ours, theirs} {
			if m.Missing != "" {
				return []Finding{{Missing: m.Name + ": " + m.Missing}}
			}
		}
		pss := float64(theirs.Memory.PSS) / float64(ours.Memory.PSS)
		private := float64(theirs.Memory.Private) / float64(ours.Memory.Private)
		return []Finding{
			{Text: fmt.Sprintf("PSS %.1fx", pss), OK: pss >= least},
			{Text: fmt.Sprintf("private %.1fx", private), OK: private >= least},
		}
	}
}

func (r *Results) memory(name string) MemoryRow {
	for _, m := range r.Memory {
		if m.Name == name {
			return m
		}
	}
	return MemoryRow{Name: name, Missing: "no such row"}
}

func tail(row string, most float64) judge {
	return func(r *Results) []Finding {
		if r.Machine.GOMAXPROCS != 2 {
			return []Finding{{Missing: fmt.Sprintf("%d processors here, not 2; run it with GOMAXPROCS=2", r.Machine.GOMAXPROCS)}}
		}
		s, why := r.Table(EngineTable("echo", 8)).Row(row)
		if s == nil {
			return []Finding{{Missing: why}}
		}
		q := s.Tail()
		return []Finding{{Text: "p99 / p50 " + multiple(q), OK: q.Median <= most}}
	}
}
