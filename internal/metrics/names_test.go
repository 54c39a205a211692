package metrics

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/runtime"
)

// counts returns the calls that went well, by tool.
func counts(t testing.TB, m *Metrics) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(m.calls)
	got := map[string]float64{}
	for series, v := range parse(t, answer(t, promhttp.HandlerFor(r, promhttp.HandlerOpts{}), "text/plain")) {
		var tool string
		if n, _ := fmt.Sscanf(series, `sandboxd_calls_total{outcome="ok",tool=%q}`, &tool); n == 1 {
			got[tool] = v
		}
	}
	return got
}

// TestNames holds counting to a model: packages come, change and go while they
// are called.
func TestNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := New(Options{})
		o := m.Observer()
		packages := rapid.SampledFrom([]string{"a", "b", "c", "Not a name"})
		tools := rapid.SampledFrom([]string{"x", "y", "z"})
		labels := rapid.SampledFrom([]string{"x", "y", "a_x", "b_y", "other", "bad\nlabel"})
		served := map[string]map[string]string{}
		want := map[string]float64{}
		settle := func() {
			live := map[string]bool{other: true}
			for _, names := range served {
				for _, label := range names {
					live[label] = true
					want[label] += 0 // from the start
				}
			}
			maps.DeleteFunc(want, func(label string, _ float64) bool { return !live[label] })
		}
		rt.Repeat(map[string]func(*rapid.T){
			"serve": func(rt *rapid.T) {
				pkg, names := packages.Draw(rt, "package"), rapid.MapOf(tools, labels).Draw(rt, "tools")
				m.Serve(pkg, names)
				if pkg == "Not a name" {
					return
				}
				maps.DeleteFunc(names, func(_, label string) bool { return label == "bad\nlabel" })
				served[pkg] = names
				settle()
			},
			"forget": func(rt *rapid.T) {
				pkg := packages.Draw(rt, "package")
				m.Forget(pkg)
				delete(served, pkg)
				settle()
			},
			"call": func(rt *rapid.T) {
				pkg, tool := packages.Draw(rt, "package"), tools.Draw(rt, "tool")
				call(o, pkg, tool, runtime.OK, time.Millisecond)
				label, ok := served[pkg][tool]
				if !ok {
					label = other
				}
				want[label]++
			},
			"": func(rt *rapid.T) {
				if got := counts(t, m); !maps.Equal(got, want) {
					rt.Fatalf("counted %v, want %v", got, want)
				}
				if len(served) == 0 && len(m.names.owners) != 0 {
					rt.Fatalf("names without an owner: %v", m.names.owners)
				}
			},
		})
	})
}

func TestBounds(t *testing.T) {
	m := New(Options{})
	o := m.Observer()
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("t%04d", i)] = fmt.Sprintf("t%04d", i)
	}
	m.Serve("hostile", many)
	if got := len(counts(t, m)); got != MaxTools {
		t.Errorf("%d tools of one package have series, want %d", got, MaxTools)
	}
	call(o, "hostile", "t0063", runtime.OK, time.Millisecond)
	call(o, "hostile", "t0064", runtime.OK, time.Millisecond)
	if got := counts(t, m); got["t0063"] != 1 || got[other] != 1 {
		t.Errorf("last tool with a name %v, other %v, want 1 each", got["t0063"], got[other])
	}
	for i := range 2 * MaxPackages {
		m.Serve(fmt.Sprint("p", i), map[string]string{"t": fmt.Sprint("p", i)})
	}
	if got := len(m.instances.labelled(nil)); got != MaxPackages {
		t.Errorf("%d packages have series, want %d", got, MaxPackages)
	}
	m.Forget("hostile")
	m.Serve("late", map[string]string{"t": "late"})
	if _, ok := counts(t, m)["late"]; !ok {
		t.Error("a package has no name although another one went")
	}
}

// A call may end after its package has gone, and nothing of the package comes
// back.
func TestForgetWhileCalled(t *testing.T) {
	m := New(Options{})
	o := m.Observer()
	m.Serve("p", map[string]string{"t": "t"})
	info := runtime.CallInfo{Package: "p", Tool: "t"}
	o.CallStart(info)
	o.Acquired("p")
	o.Kind("p", runtime.KindNew, runtime.ReasonRandom)
	o.Reset("p", "new", time.Millisecond)
	m.Forget("p")
	if vs := values(t, m); vs[`sandboxd_instances{package="other",state="busy"}`] != 1 || vs["sandboxd_calls_in_flight"] != 1 {
		t.Errorf("the call that runs is not counted: %v", vs)
	}
	o.Released("p")
	o.CallEnd(info, &runtime.Result{Outcome: runtime.OK})
	vs := values(t, m)
	if got := counts(t, m); len(got) != 1 || got[other] != 1 || vs["sandboxd_calls_in_flight"] != 0 {
		t.Errorf("counted %v, %v in flight", got, vs["sandboxd_calls_in_flight"])
	}
	for series := range vs {
		if series == `sandboxd_instances{package="p",state="busy"}` || series == `sandboxd_instance_reset_seconds_count{method="new",package="p"}` ||
			strings.HasPrefix(series, "sandboxd_package_image_info") {
			t.Errorf("%s came back", series)
		}
	}
}

// Calls, changes of packages and scrapes at one time: nothing is lost, and with
// the race detector nothing races.
func TestConcurrent(t *testing.T) {
	const callers, each = 4, 500
	m := New(Options{})
	o := m.Observer()
	m.Serve("steady", map[string]string{"t": "steady"})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				call(o, "steady", "t", runtime.OK, time.Millisecond)
				call(o, "passing", "t", runtime.Violation, time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		for i := range each {
			m.Serve("passing", map[string]string{"t": fmt.Sprint("name", i%7)})
			m.Forget("passing")
		}
	})
	wg.Go(func() {
		for range 10 {
			scrape(t, m, openMetrics)
		}
	})
	wg.Wait()
	got := counts(t, m)
	if got["steady"] != callers*each {
		t.Errorf("%v calls counted, want %d", got["steady"], callers*each)
	}
	if vs := values(t, m); vs["sandboxd_calls_in_flight"] != 0 || vs[`sandboxd_instances{package="steady",state="busy"}`] != 0 {
		t.Errorf("%v in flight, %v instances in use, want none", vs["sandboxd_calls_in_flight"], vs[`sandboxd_instances{package="steady",state="busy"}`])
	}
}
