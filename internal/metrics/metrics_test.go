package metrics

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

var update = flag.Bool("update", false, "write the golden files anew")

const openMetrics = "application/openmetrics-text; version=1.0.0"

// scrape returns what the handler answers to one who accepts the given format.
func scrape(t testing.TB, m *Metrics, accept string) []byte {
	t.Helper()
	return answer(t, m.Handler(), accept)
}

func answer(t testing.TB, h http.Handler, accept string) []byte {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// values returns the value of each series, without those of the Go runtime and
// the process.
func values(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	return parse(t, scrape(t, m, "text/plain"))
}

func parse(t testing.TB, text []byte) map[string]float64 {
	t.Helper()
	vs := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "sandboxd_") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		vs[line[:at]] = v
	}
	return vs
}

// call plays the events of one call.
func call(o runtime.Observer, pkg, tool string, outcome runtime.Outcome, took time.Duration) {
	info := runtime.CallInfo{ID: "ABCDEFGHIJKLMNOPQRSTUVWXY2", Package: pkg, Tool: tool}
	o.CallStart(info)
	o.Acquired(pkg)
	o.Idle(pkg, -1)
	switch outcome {
	case runtime.Violation:
		o.Violation(info, capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpUnlink, Object: "/data/a"})
	case runtime.Refused:
		o.Denial(info, capabilities.Denial{Capability: capabilities.CapVolumeWrite, Operation: capabilities.OpWrite, Object: "/data/a", Errno: capabilities.EROFS})
	case runtime.Conflict:
		o.Conflict(info)
	case runtime.OK:
		o.Replayed(info, runtime.Idempotent)
		o.Sent(info, runtime.SentOutbox)
		o.Commit(info, took/2)
	case runtime.ToolError, runtime.Timeout, runtime.Limit, runtime.HostError:
	}
	o.Released(pkg)
	o.Reset(pkg, "scan", took/10)
	o.Idle(pkg, 1)
	o.CallEnd(info, &runtime.Result{Outcome: outcome, Duration: took})
}

// script plays some of everything.
func script(m *Metrics) {
	o := m.Observer()
	m.Serve("notes", map[string]string{"read_note": "notes_read_note", "save_note": "save_note"})
	m.Serve("idle", map[string]string{"sleep": "sleep"})
	for range 3 {
		call(o, "notes", "read_note", runtime.OK, 20*time.Millisecond)
	}
	call(o, "notes", "read_note", runtime.Violation, 4*time.Millisecond)
	call(o, "notes", "save_note", runtime.Conflict, 400*time.Millisecond)
	call(o, "notes", "save_note", runtime.Refused, 4*time.Millisecond)
	call(o, "notes", "no_such_tool", runtime.Refused, 0)
	call(o, "gone", "read_note", runtime.Timeout, time.Second)
	o.CallStart(runtime.CallInfo{})
	o.Acquired("idle")
	o.Idle("idle", 2)
	o.Reset("idle", "new", time.Millisecond)
	o.Acquired("gone")
	o.Reset("gone", "thawed", time.Millisecond)
	o.Kind("idle", runtime.KindNew, runtime.ReasonRandom)
	o.Kind("notes", runtime.KindInitialized, "")
	o.Kind("gone", runtime.KindInitialized, "")
	m.Loaded(true)
	m.Loaded(false)
	m.Reloaded(true)
	m.Reloaded(false)
	m.RecordsLost(func() float64 { return 2 })
	m.Delivery("delivered")
	m.Delivery("gone")
	m.Outbox(3, time.Now().Add(-time.Minute))
}

var unsteady = regexp.MustCompile(`(?m)^sandboxd_config_last_reload_success_timestamp_seconds .*\n|^sandboxd_outbox_oldest_message_seconds .*\n|goversion="[^"]*",`)

func TestExposition(t *testing.T) {
	m := New(Options{Version: "v1.2.3", Commit: "abc"})
	script(m)
	var got []byte
	for line := range bytes.Lines(scrape(t, m, "text/plain")) {
		if bytes.Contains(line, []byte("sandboxd_")) {
			got = append(got, line...)
		}
	}
	got = unsteady.ReplaceAll(got, nil)
	file := filepath.Join("testdata", "exposition.txt")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it):\n%s", file, got)
	}
}

func TestLint(t *testing.T) {
	m := New(Options{})
	script(m)
	problems, err := promlint.New(bytes.NewReader(scrape(t, m, "text/plain"))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A measurement leads to the call in the audit log.
func TestExemplars(t *testing.T) {
	m := New(Options{})
	script(m)
	text := string(scrape(t, m, openMetrics))
	for _, series := range []string{
		`sandboxd_violations_total{hint="readOnlyHint",operation="unlink",tool="notes_read_note"} 1.0`,
		`sandboxd_denials_total{capability="volume-write",tool="save_note"} 1.0`,
		`sandboxd_commit_conflicts_total{tool="save_note"} 1.0`,
		`sandboxd_call_duration_seconds_bucket{tool="notes_read_note",le="0.025"} 4`,
	} {
		if want := series + ` # {call_id="ABCDEFGHIJKLMNOPQRSTUVWXY2"} `; !strings.Contains(text, want) {
			t.Errorf("no exemplar: %s", want)
		}
	}
	if !strings.HasSuffix(text, "# EOF\n") {
		t.Error("OpenMetrics text has no end")
	}
}

// An id that no exemplar has room for is counted all the same.
func TestExemplarWithoutRoom(t *testing.T) {
	for _, id := range []string{"", "\xff", "a\nb", strings.Repeat("a", 122), strings.Repeat("a", 5000)} {
		m := New(Options{})
		m.Serve("p", map[string]string{"t": "t"})
		o, info := m.Observer(), runtime.CallInfo{ID: id, Package: "p", Tool: "t"}
		o.CallStart(info)
		o.Violation(info, capabilities.Violation{})
		o.CallEnd(info, &runtime.Result{Outcome: runtime.Violation})
		if vs := values(t, m); vs[`sandboxd_calls_total{outcome="violation",tool="t"}`] != 1 || vs[`sandboxd_violations_total{hint="other",operation="other",tool="t"}`] != 1 {
			t.Errorf("id of %d bytes: not counted", len(id))
		}
	}
}

// rate() sees the first event only of a series that was there before it.
func TestSeriesFromTheStart(t *testing.T) {
	m := New(Options{})
	m.Serve("p", map[string]string{"t": "p_t"})
	vs := values(t, m)
	for _, series := range []string{
		`sandboxd_calls_total{outcome="ok",tool="p_t"}`,
		`sandboxd_calls_total{outcome="violation",tool="p_t"}`,
		`sandboxd_calls_total{outcome="host_error",tool="p_t"}`,
		`sandboxd_commit_conflicts_total{tool="p_t"}`,
		`sandboxd_instances{package="p",state="busy"}`,
		`sandboxd_package_loads_total{result="error"}`,
		`sandboxd_config_reloads_total{result="error"}`,
		`sandboxd_calls_in_flight`,
		`sandboxd_outbox_messages`,
		`sandboxd_outbox_oldest_message_seconds`,
		`sandboxd_outbox_deliveries_total{result="given-up"}`,
		`sandboxd_audit_records_lost_total`,
	} {
		if v, ok := vs[series]; !ok || v != 0 {
			t.Errorf("%s: %v, there: %t", series, v, ok)
		}
	}
}

// How long the outbox has been stuck is counted up to the scrape, not to the last
// look at it.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{})
		m.Outbox(2, time.Now().Add(-time.Minute))
		time.Sleep(time.Hour)
		vs := values(t, m)
		if vs["sandboxd_outbox_messages"] != 2 || vs["sandboxd_outbox_oldest_message_seconds"] != 3660 {
			t.Errorf("%v messages, the oldest of %v s", vs["sandboxd_outbox_messages"], vs["sandboxd_outbox_oldest_message_seconds"])
		}
		m.Outbox(0, time.Time{})
		vs = values(t, m)
		if vs["sandboxd_outbox_messages"] != 0 || vs["sandboxd_outbox_oldest_message_seconds"] != 0 {
			t.Errorf("an empty outbox: %v", vs)
		}
	})
}

// The series of second runs and sends go with their package, and each verdict has
// its own.
func TestReplaysAndSends(t *testing.T) {
	m := New(Options{})
	m.Serve("p", map[string]string{"t": "p_t"})
	o, info := m.Observer(), runtime.CallInfo{Package: "p", Tool: "t"}
	verdicts := []runtime.Replay{runtime.Idempotent, runtime.Further, runtime.TimeDependent, runtime.Inconclusive}
	for _, v := range verdicts {
		o.Replayed(info, v)
	}
	o.Sent(info, runtime.SentOutbox)
	vs := values(t, m)
	for _, v := range verdicts {
		if s := fmt.Sprintf(`sandboxd_replays_total{tool="p_t",verdict="%s"}`, v); vs[s] != 1 {
			t.Errorf("%s: %v", s, vs[s])
		}
	}
	if vs[`sandboxd_sends_total{kind="outbox",tool="p_t"}`] != 1 {
		t.Errorf("sends: %v", vs)
	}
	m.Forget("p")
	for s := range values(t, m) {
		if strings.Contains(s, "p_t") {
			t.Errorf("%s is still there", s)
		}
	}
}

func TestReloaded(t *testing.T) {
	m := New(Options{})
	began := values(t, m)["sandboxd_config_last_reload_success_timestamp_seconds"]
	if now := float64(time.Now().Unix()); began < now-3600 || began > now+1 {
		t.Errorf("configuration of the start: taken over at %f, now is %f", began, now)
	}
	for _, ok := range []bool{false, true} {
		m.Reloaded(ok)
		want := map[bool]float64{true: 1}[ok]
		if got := values(t, m)["sandboxd_config_last_reload_successful"]; got != want {
			t.Errorf("reloaded %t: %v", ok, got)
		}
	}
	if again := values(t, m)["sandboxd_config_last_reload_success_timestamp_seconds"]; again <= began {
		t.Errorf("reload at %f is not after %f", again, began)
	}
}

// hostile are names that a package or a client may think of.
var hostile = []string{"", "other2\n", `a"} 1`, "\xff\xfe", "a{b=\"c\"}", "тул", strings.Repeat("n", 129), "\x00", "a b", "..\u202e"}

// What calls bring along makes no series, whatever it is.
func TestCallsMakeNoSeries(t *testing.T) {
	m := New(Options{})
	m.Serve("p", map[string]string{"t": "t"})
	o := m.Observer()
	// The series of what has no name of its own, and of every outcome.
	outcomes := []runtime.Outcome{runtime.OK, runtime.Violation, runtime.Refused, runtime.Conflict, runtime.Timeout, "new"}
	for _, outcome := range outcomes {
		call(o, "", "", outcome, time.Millisecond)
	}
	o.Replayed(runtime.CallInfo{}, "no verdict")
	o.Sent(runtime.CallInfo{}, "nothing")
	m.Delivery("no result")
	before := len(values(t, m))
	for i := range 10_000 {
		name := fmt.Sprint("tool-", i)
		if i < len(hostile) {
			name = hostile[i]
		}
		call(o, name, name, outcomes[i%len(outcomes)], time.Millisecond)
		info := runtime.CallInfo{ID: name, Principal: name, Package: name, Tool: name, Trace: runtime.TraceContext{Traceparent: name}}
		o.Violation(info, capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpUnlink, Object: name})
		o.Denial(info, capabilities.Denial{Capability: capabilities.CapVolumeWrite, Operation: capabilities.OpWrite, Object: name})
		o.Replayed(info, runtime.Replay(name))
		o.Sent(info, runtime.SendKind(name))
		m.Delivery(name)
	}
	after := values(t, m)
	if len(after) != before {
		t.Errorf("%d series became %d", before, len(after))
	}
	if got := after[`sandboxd_denials_total{capability="volume-write",tool="other"}`]; got < 10_000 {
		t.Errorf("%v denials counted, want 10000 and more", got)
	}
	if len(m.instances.busy)+len(m.instances.idle) != 0 {
		t.Errorf("packages without instances are kept: %d", len(m.instances.busy)+len(m.instances.idle))
	}
}

// A constant of package capabilities or runtime that has no label of its own
// would be counted as other.
func TestLabelsOfConstants(t *testing.T) {
	for h := range capabilities.Hints() {
		if hintLabel(h) != h.String() {
			t.Errorf("%s: %s", h, hintLabel(h))
		}
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "capabilities", "effect.go"))
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`(?m)^\t\w+\s+(Operation|Capability) = "([a-z_-]+)"`)
	var kinds []string
	for _, c := range constant.FindAllStringSubmatch(string(source), -1) {
		kinds = append(kinds, c[1])
		got := operationLabel(capabilities.Operation(c[2]))
		if c[1] == "Capability" {
			got = capabilityLabel(capabilities.Capability(c[2]))
		}
		if got != c[2] {
			t.Errorf("%s %s: label %s", c[1], c[2], got)
		}
	}
	if len(kinds) < 30 || !slices.Contains(kinds, "Operation") || !slices.Contains(kinds, "Capability") {
		t.Errorf("%d constants found: the pattern is not right", len(kinds))
	}
}

// Every metric is documented, and nothing else.
func TestDocumented(t *testing.T) {
	m := New(Options{})
	script(m)
	served := map[string]bool{}
	for _, f := range regexp.MustCompile(`(?m)^# TYPE (sandboxd_\w+) (\w+)`).FindAllStringSubmatch(string(scrape(t, m, "text/plain")), -1) {
		served[f[1]] = true
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(sandboxd_\\w+)").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = true
	}
	if !maps.Equal(served, documented) {
		t.Errorf("docs/metrics.md has %v, served are %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(served)))
	}
}

func BenchmarkCall(b *testing.B) {
	m := New(Options{})
	m.Serve("p", map[string]string{"t": "t"})
	o := m.Observer()
	b.ReportAllocs()
	for b.Loop() {
		call(o, "p", "t", runtime.OK, 5*time.Millisecond)
	}
}

// BenchmarkScrape is of the most packages with the most tools that one engine
// has names for, all of them called.
func BenchmarkScrape(b *testing.B) {
	m := New(Options{})
	o := m.Observer()
	for p := range MaxPackages {
		served := map[string]string{}
		for t := range MaxTools {
			name := fmt.Sprintf("p%d_t%d", p, t)
			served[name] = name
		}
		m.Serve(fmt.Sprint("p", p), served)
		for name := range served {
			call(o, fmt.Sprint("p", p), name, runtime.OK, 5*time.Millisecond)
		}
	}
	for b.Loop() {
		scrape(b, m, "text/plain")
	}
}
