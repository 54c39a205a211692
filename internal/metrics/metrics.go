// Package metrics counts what an engine does and serves it to Prometheus.
//
// No label value comes from a call: tools and packages are named by what was
// given to [Metrics.Serve], everything else by constants. What has no name of
// its own is counted under "other".
package metrics

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sandboxd/sandboxd/runtime"
)

// Options of [New].
type Options struct {
	Version string // of the program; empty: "devel"
	Commit  string // of its sources; empty: "unknown"
}

// Metrics holds the metrics of one engine in a registry of its own. It is safe
// for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	// mu is held for reading while a series is looked up and changed, so that
	// Forget does not meet one that comes back.
	mu    sync.RWMutex
	names names

	calls      *prometheus.CounterVec   // tool, outcome
	violations *prometheus.CounterVec   // tool, hint, operation
	denials    *prometheus.CounterVec   // tool, capability
	durations  *prometheus.HistogramVec // tool
	conflicts  *prometheus.CounterVec   // tool
	replays    *prometheus.CounterVec   // tool, verdict
	sends      *prometheus.CounterVec   // tool, kind
	inFlight   prometheus.Gauge
	commits    prometheus.Histogram
	instances  *instances
	resets     *prometheus.HistogramVec // package, method
	loads      *prometheus.CounterVec   // result

	deliveries *prometheus.CounterVec // result
	waiting    prometheus.Gauge
	oldest     atomic.Int64 // when what waits longest was committed, in nanoseconds since 1970; 0: nothing waits

	notServed    prometheus.Gauge
	unauthorized prometheus.Counter

	reloads     *prometheus.CounterVec // result
	reloaded    prometheus.Gauge       // 0 or 1
	reloadedAt  prometheus.Gauge       // Unix time in seconds
	recordsLost atomic.Pointer[func() float64]
}

// Bounds of the classic buckets, in seconds.
var (
	callBuckets   = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	commitBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	resetBuckets  = []float64{.000001, .000005, .00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .5, 1}
)

// New returns metrics of a program that serves no package yet.
func New(o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		names:    newNames(),

		calls:      counters("calls_total", "Calls that ended, by tool and outcome.", "tool", "outcome"),
		violations: counters("violations_total", "Attempts that break a claim of their tool.", "tool", "hint", "operation"),
		denials:    counters("denials_total", "Attempts that a claim allows, but not the request or the operator.", "tool", "capability"),
		durations:  prometheus.NewHistogramVec(histogram("call_duration_seconds", "How long calls took, from their arrival to their result.", callBuckets), []string{"tool"}),
		conflicts:  counters("commit_conflicts_total", "Runs of calls that met a conflict, also where the call was run again.", "tool"),
		replays:    counters("replays_total", "Calls that were run a second time, by what that showed.", "tool", "verdict"),
		sends:      counters("sends_total", "What left the host, or will leave it, for a call.", "tool", "kind"),
		inFlight:   gauge("calls_in_flight", "Calls that have begun and not ended."),
		commits:    prometheus.NewHistogram(histogram("commit_seconds", "How long commits took.", commitBuckets)),
		instances:  newInstances(),
		resets:     prometheus.NewHistogramVec(histogram("instance_reset_seconds", "How long it took to get an instance ready for its next call.", resetBuckets), []string{"package", "method"}),
		loads:      counters("package_loads_total", "Tries to load a package.", "result"),

		deliveries: counters("outbox_deliveries_total", "Tries to deliver a message of the outbox.", "result"),
		waiting:    gauge("outbox_messages", "Messages of the outbox that are neither delivered nor given up."),

		notServed:    gauge("packages_not_served", "Packages of the configuration that could not be loaded."),
		unauthorized: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "http_unauthorized_total", Help: "Requests without the token of a principal where one is needed."}),

		reloads:    counters("config_reloads_total", "Tries to take over a changed configuration.", "result"),
		reloaded:   gauge("config_last_reload_successful", "Whether the last try to take over a configuration went well."),
		reloadedAt: gauge("config_last_reload_success_timestamp_seconds", "When a configuration was last taken over, the one at the start included."),
	}
	lost := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "audit_records_lost_total", Help: "Records that could not be written to the audit log.",
	}, m.lost)
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "outbox_oldest_message_seconds", Help: "How long the oldest message of the outbox has waited; 0 where there is none.",
	}, m.oldestMessage)
	m.instances.metrics = m
	m.registry.MustRegister(
		m.calls, m.violations, m.denials, m.durations, m.conflicts, m.replays, m.sends, m.inFlight, m.commits, m.instances, m.resets, m.loads,
		m.deliveries, m.waiting, oldest, m.notServed, m.unauthorized, m.reloads, m.reloaded, m.reloadedAt, lost,
		buildInfo(o), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, result := range []string{resultOK, resultError} {
		m.loads.WithLabelValues(result)
		m.reloads.WithLabelValues(result)
	}
	for _, result := range deliveryResults {
		m.deliveries.WithLabelValues(result)
	}
	m.reloaded.Set(1)
	m.reloadedAt.SetToCurrentTime()
	return m
}

const namespace = "sandboxd"

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

// histogram returns options of a native histogram with classic buckets, for
// servers that do not read native ones.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

func buildInfo(o Options) prometheus.Collector {
	if o.Version == "" {
		o.Version = "devel"
	}
	if o.Commit == "" {
		o.Commit = "unknown"
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What the program was built from; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "revision": o.Commit, "goversion": goruntime.Version()},
	}, func() float64 { return 1 })
}

// Loaded counts a try to load a package; which one it was is in the log.
func (m *Metrics) Loaded(ok bool) { m.loads.WithLabelValues(result(ok)).Inc() }

// NotServed sets how many packages of the configuration are not served.
func (m *Metrics) NotServed(n int) { m.notServed.Set(float64(n)) }

// Unauthorized counts a request that nobody answers for.
func (m *Metrics) Unauthorized() { m.unauthorized.Inc() }

// Reloaded counts a try to take over a changed configuration.
func (m *Metrics) Reloaded(ok bool) {
	m.reloads.WithLabelValues(result(ok)).Inc()
	if !ok {
		m.reloaded.Set(0)
		return
	}
	m.reloaded.Set(1)
	m.reloadedAt.SetToCurrentTime()
}

// Delivery counts a try to deliver a message by its result: delivered, failed or
// given-up. Others are counted as other.
func (m *Metrics) Delivery(result string) {
	m.deliveries.WithLabelValues(deliveryLabel(result)).Inc()
}

// Outbox sets how many messages wait, and since when the oldest of them does; zero
// where there is none.
func (m *Metrics) Outbox(messages int, since time.Time) {
	m.waiting.Set(float64(messages))
	if since.IsZero() {
		m.oldest.Store(0)
		return
	}
	m.oldest.Store(since.UnixNano())
}

func (m *Metrics) oldestMessage() float64 {
	at := m.oldest.Load()
	if at == 0 {
		return 0
	}
	return max(time.Since(time.Unix(0, at)).Seconds(), 0)
}

// RecordsLost sets where the number of audit records that could not be written
// is read from, at each scrape. It must not block and never decreases.
func (m *Metrics) RecordsLost(f func() float64) { m.recordsLost.Store(&f) }

func (m *Metrics) lost() float64 {
	if f := m.recordsLost.Load(); f != nil {
		return (*f)()
	}
	return 0
}

// Serve gives a package's tools series of their own, from 0 where that lets
// the first event be seen as an increase. served is the name that clients see,
// by the name in the package. It replaces what was said of the package before;
// series of tools that stay keep their values. Names that are no names of tools
// or packages, tools beyond [MaxTools] in the order of their names, and packages
// beyond [MaxPackages] are counted under "other".
func (m *Metrics) Serve(pkg string, served map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.names.serve(pkg, served))
	for _, name := range m.names.served(pkg) {
		for _, o := range []runtime.Outcome{runtime.OK, runtime.Violation, runtime.HostError} {
			m.calls.WithLabelValues(name, string(o))
		}
		m.conflicts.WithLabelValues(name)
	}
}

// Forget drops a package and the series of its tools. Calls of it that still
// run are counted under "other" when they end.
func (m *Metrics) Forget(pkg string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	label := m.names.pkg(pkg)
	m.instances.forget(pkg)
	m.drop(m.names.forget(pkg))
	if label != other {
		m.resets.DeletePartialMatch(prometheus.Labels{"package": label})
	}
}

// drop deletes the series of tools.
func (m *Metrics) drop(tools []string) {
	for _, name := range tools {
		of := prometheus.Labels{"tool": name}
		m.calls.DeletePartialMatch(of)
		m.violations.DeletePartialMatch(of)
		m.denials.DeletePartialMatch(of)
		m.durations.DeletePartialMatch(of)
		m.conflicts.DeletePartialMatch(of)
		m.replays.DeletePartialMatch(of)
		m.sends.DeletePartialMatch(of)
	}
}
