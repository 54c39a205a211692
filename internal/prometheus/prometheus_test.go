package prometheus

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/runtime"
)

const rounds = 5

// TestScrape holds what Prometheus says, with native histograms and with
// classic ones, against what the callers saw.
func TestScrape(t *testing.T) {
	if *prometheusPath == "" {
		t.Skip("-prometheus names no program (Debian: apt-get install prometheus)")
	}
	s := newStage(t, "notes", "liars", "honest", "search-index")
	native := start(t, s.target, "native-histograms", "exemplar-storage")
	classic := start(t, s.target, "exemplar-storage")
	for _, p := range []*server{native, classic} {
		p.wait(t, `count(sandboxd_calls_total{outcome="violation"} == 0) > bool 0`, 1)
	}
	seen := s.seen
	s.load(t, rounds)
	if len(seen.violations) < 10 || len(seen.denials) == 0 || len(seen.replays) < 2 || len(seen.sends) == 0 {
		t.Fatalf("the load has %d kinds of violations, %d of denials, %d of second runs and %d of sends", len(seen.violations), len(seen.denials), len(seen.replays), len(seen.sends))
	}
	for name, p := range map[string]*server{"native": native, "classic": classic} {
		t.Run(name, func(t *testing.T) {
			p.wait(t, `sum(sandboxd_calls_total)`, seen.total)
			compare(t, p, seen)
			exemplars(t, p, seen)
			alerts(t, p)
			dashboard(t, p)
		})
	}
	hold(t, native.by(t, `histogram_count(sandboxd_call_duration_seconds)`, "tool"), seen.byTool)
	if rs := native.query(t, `sandboxd_call_duration_seconds`); len(rs) == 0 || rs[0].Histogram == nil {
		t.Error("no native histogram")
	}
	hold(t, classic.by(t, `sandboxd_call_duration_seconds_count`, "tool"), seen.byTool)
	hostile(t, s, native)
}

func hold(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("prometheus has %v\nwant %v", got, want)
	}
}

func compare(t *testing.T, p *server, seen *tally) {
	t.Helper()
	hold(t, p.by(t, `sandboxd_calls_total > 0`, "tool", "outcome"), seen.calls)
	hold(t, p.by(t, `sandboxd_violations_total`, "tool", "hint", "operation"), seen.violations)
	hold(t, p.by(t, `sandboxd_denials_total`, "tool", "capability"), seen.denials)
	hold(t, p.by(t, `sandboxd_commit_conflicts_total > 0`, "tool"), seen.conflicts)
	hold(t, p.by(t, `sandboxd_replays_total`, "tool", "verdict"), seen.replays)
	hold(t, p.by(t, `sandboxd_sends_total`, "tool", "kind"), seen.sends)
	hold(t, p.by(t, `sandboxd_calls_in_flight`), map[string]float64{"": 0})
	hold(t, p.by(t, `sandboxd_instances{state="busy"}`, "package"), map[string]float64{"notes": 0, "liars": 0, "honest": 0, "search-index": 0})
	// Each run has an instance, and a run that met a conflict is run again but
	// for the last one. A second run has an instance, too, and so has a third.
	const count = `sum(histogram_count(%[1]s)) or sum(%[1]s_count)`
	runs := `sum(sandboxd_calls_total) + sum(sandboxd_commit_conflicts_total) - (sum(sandboxd_calls_total{outcome="conflict"}) or vector(0))`
	instances, first, again := p.by(t, fmt.Sprintf(count, `sandboxd_instance_reset_seconds`))[""], p.by(t, runs)[""], p.by(t, `sum(sandboxd_replays_total)`)[""]
	if instances < first+again || instances > first+2*again {
		t.Errorf("%v instances for %v runs and %v that were run again", instances, first, again)
	}
	if got := p.by(t, fmt.Sprintf(count, `sandboxd_commit_seconds`)); got[""] < seen.committed || seen.committed == 0 {
		t.Errorf("%v commits, calls that were committed: %v", got, seen.committed)
	}
	hold(t, p.by(t, `count by (version) (sandboxd_build_info)`, "version"), map[string]float64{"v0.0.0-test": 1})
	// The first call of a tool is seen as an increase.
	if got := len(p.query(t, `increase(sandboxd_calls_total{outcome="violation"}[5m]) > 0`)); got != len(lying(seen)) {
		t.Errorf("%d tools show an increase of violations, want %d", got, len(lying(seen)))
	}
}

// lying returns the tools that broke a claim.
func lying(seen *tally) map[string]bool {
	tools := map[string]bool{}
	for key := range seen.violations {
		tools[key[:strings.IndexByte(key, ' ')]] = true
	}
	return tools
}

// exemplars checks that measurements lead to calls that were made.
func exemplars(t *testing.T, p *server, seen *tally) {
	t.Helper()
	now := time.Now()
	for _, metric := range []string{`sandboxd_violations_total`, `sandboxd_denials_total`, `{__name__=~"sandboxd_call_duration_seconds(_bucket)?"}`} {
		var series []struct {
			Exemplars []struct{ Labels map[string]string }
		}
		p.get(t, "query_exemplars", url.Values{
			"query": {metric},
			"start": {strconv.FormatInt(now.Add(-time.Hour).Unix(), 10)}, "end": {strconv.FormatInt(now.Add(time.Hour).Unix(), 10)},
		}, &series)
		if len(series) == 0 {
			t.Errorf("%s: no exemplars", metric)
		}
		for _, s := range series {
			for _, e := range s.Exemplars {
				if id := e.Labels["call_id"]; !seen.ids[id] {
					t.Errorf("%s: exemplar of call %q, which nobody made", metric, id)
				}
			}
		}
	}
}

// alerting says which alerts the load gives reason for. Those that are not in it
// depend on how fast the machine is.
var alerting = map[string]bool{
	"SandboxdViolation": true, "SandboxdDown": false, "SandboxdHostError": false,
	"SandboxdPackageLoad": false, "SandboxdPackageNotServed": false, "SandboxdReloadFailed": false, "SandboxdAuditRecordsLost": false,
	"SandboxdOutboxStuck": false, "SandboxdOutboxGivenUp": false,
}

// alerts runs each rule's expression, and sees the one fire that should.
func alerts(t *testing.T, p *server) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Query string }
		}
	}
	p.get(t, "rules", nil, &rules)
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			n++
			got := len(p.query(t, r.Query))
			if want, ok := alerting[r.Name]; ok && (got > 0) != want {
				t.Errorf("alert %s: %d results: %s", r.Name, got, r.Query)
			}
		}
	}
	if n <= len(alerting) {
		t.Errorf("%d alerts, %d of them known here", n, len(alerting))
	}
	p.wait(t, `count(ALERTS{alertname="SandboxdViolation", alertstate="firing"}) > bool 0`, 1)
}

// mayBeEmpty are queries of the dashboard about what the load does not do.
var mayBeEmpty = regexp.MustCompile(`limit\|timeout`)

// dashboard runs each query of the dashboard.
func dashboard(t *testing.T, p *server) {
	t.Helper()
	for title, exprs := range dashboardQueries(t) {
		for _, expr := range exprs {
			if got := len(p.query(t, expr)); got == 0 && !mayBeEmpty.MatchString(expr) {
				t.Errorf("panel %q: nothing: %s", title, expr)
			}
		}
	}
}

// dashboardQueries returns the queries by their panels, with the variables set
// as Grafana would set them.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "grafana", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	set := strings.NewReplacer("$__rate_interval", "1m", "$__range", "10m", "$job", "sandboxd", "$instance", ".*", "$tool", ".*")
	queries := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expr := set.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: unknown variable: %s", p.Title, expr)
			}
			queries[p.Title] = append(queries[p.Title], expr)
		}
	}
	if len(queries) < 10 {
		t.Fatalf("%d panels with queries", len(queries))
	}
	return queries
}

// hostile makes calls of tools that there are not, which changes one series.
func hostile(t *testing.T, s *stage, p *server) {
	t.Helper()
	const series = `count({__name__=~"sandboxd_.+", tool!="other"})`
	before := p.by(t, series)
	names := map[string]string{}
	for i := range 10_000 {
		name := fmt.Sprintf("tool-%d\u202e\n{job=\"x\"}", i)
		names[name] = name
		if r := s.packages["liars"].Call(t.Context(), runtime.Request{Tool: name}); r.Outcome != runtime.Refused {
			t.Fatalf("call of no tool: %s", r.Outcome)
		}
	}
	// A package whose names were not validated gets no series either.
	s.metrics.Serve("hostile", names)
	p.wait(t, `sum(sandboxd_calls_total)`, s.seen.total+10_000)
	hold(t, p.by(t, `sandboxd_calls_total{tool="other"}`, "outcome"), map[string]float64{"refused": 10_000})
	// The package that serves nothing has its one gauge.
	hold(t, p.by(t, series+` - count(sandboxd_instances{package="hostile"})`), before)
}

// TestMetricsOfDeployment compares the metrics that alerts, dashboard and
// their tests ask for with those that there are.
func TestMetricsOfDeployment(t *testing.T) {
	documented, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(sandboxd_\\w+)").FindAllStringSubmatch(string(documented), -1) {
		known = append(known, m[1])
	}
	for _, file := range []string{"prometheus/alerts.yml", "prometheus/alerts_test.yml", "grafana/dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(deploy, file))
		if err != nil {
			t.Fatal(err)
		}
		used := regexp.MustCompile(`\bsandboxd_\w+`).FindAllString(string(text), -1)
		if len(used) < 10 {
			t.Errorf("%s: %d metrics", file, len(used))
		}
		for _, name := range used {
			if !slices.Contains(known, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
	dashboardQueries(t)
}

// TestRules has promtool check what is deployed.
func TestRules(t *testing.T) {
	if *promtoolPath == "" {
		t.Skip("-promtool names no program (Debian: apt-get install prometheus)")
	}
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"},
		{"check", "rules", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.Command(*promtoolPath, args...)
		cmd.Dir = filepath.Join(deploy, "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
