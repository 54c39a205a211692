package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// Observer returns what counts the events of an engine.
func (m *Metrics) Observer() runtime.Observer {
	return runtime.Observer{
		CallStart: func(runtime.CallInfo) { m.inFlight.Inc() },
		CallEnd:   m.callEnd,
		Violation: func(i runtime.CallInfo, v capabilities.Violation) {
			m.count(i, m.violations, hintLabel(v.Hint), operationLabel(v.Operation))
		},
		Denial: func(i runtime.CallInfo, d capabilities.Denial) {
			m.count(i, m.denials, capabilityLabel(d.Capability))
		},
		Conflict: func(i runtime.CallInfo) { m.count(i, m.conflicts) },
		Commit:   func(_ runtime.CallInfo, took time.Duration) { m.commits.Observe(took.Seconds()) },
		Replayed: func(i runtime.CallInfo, v runtime.Replay) { m.count(i, m.replays, replayLabel(v)) },
		Sent:     func(i runtime.CallInfo, k runtime.SendKind) { m.count(i, m.sends, sendLabel(k)) },
		Acquired: m.instances.acquire,
		Released: m.instances.release,
		Idle:     m.instances.waits,
		Kind:     m.instances.kind,
		Reset:    m.reset,
	}
}

func (m *Metrics) callEnd(i runtime.CallInfo, r *runtime.Result) {
	m.inFlight.Dec()
	m.mu.RLock()
	defer m.mu.RUnlock()
	tool := m.names.tool(i.Package, i.Tool)
	m.calls.WithLabelValues(tool, outcomeLabel(r.Outcome)).Inc()
	h := m.durations.WithLabelValues(tool)
	if e := exemplar(i); e != nil {
		h.(prometheus.ExemplarObserver).ObserveWithExemplar(r.Duration.Seconds(), e)
		return
	}
	h.Observe(r.Duration.Seconds())
}

// count adds one to a counter of the call's tool.
func (m *Metrics) count(i runtime.CallInfo, of *prometheus.CounterVec, labels ...string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := of.WithLabelValues(append([]string{m.names.tool(i.Package, i.Tool)}, labels...)...)
	if e := exemplar(i); e != nil {
		c.(prometheus.ExemplarAdder).AddWithExemplar(1, e)
		return
	}
	c.Inc()
}

func (m *Metrics) reset(pkg, method string, took time.Duration) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.resets.WithLabelValues(m.names.pkg(pkg), methodLabel(method)).Observe(took.Seconds())
}

// exemplar names the call in the audit log that a measurement is of; nil for an
// id that an exemplar has no room for (prometheus.ExemplarMaxRunes).
func exemplar(i runtime.CallInfo) prometheus.Labels {
	if !valid(i.ID) || len(i.ID)+len("call_id") > prometheus.ExemplarMaxRunes {
		return nil
	}
	return prometheus.Labels{"call_id": i.ID}
}
