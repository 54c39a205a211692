package trace

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

const method = "tools/call"

// Observer returns the observer that makes the spans: one a call, the child of
// the caller's span where the call carries a valid W3C trace context, with an
// event for each violation, denial and conflict, and a span below it for each
// commit. Neither arguments nor results are in it.
func (t *Tracer) Observer() runtime.Observer {
	return runtime.Observer{
		CallStart: t.start,
		Violation: func(c runtime.CallInfo, v capabilities.Violation) {
			t.event(c, "sandboxd.violation", str("sandboxd.hint", v.Hint.String()), str("sandboxd.operation", string(v.Operation)),
				str("sandboxd.object", v.Object), str("sandboxd.phase", string(v.Phase)))
		},
		Denial: func(c runtime.CallInfo, d capabilities.Denial) {
			t.event(c, "sandboxd.denial", str("sandboxd.capability", string(d.Capability)), str("sandboxd.operation", string(d.Operation)),
				str("sandboxd.object", d.Object), str("sandboxd.errno", string(d.Errno)))
		},
		Conflict: func(c runtime.CallInfo) { t.event(c, "sandboxd.conflict") },
		Commit:   t.commit,
		CallEnd:  t.end,
	}
}

func (t *Tracer) start(c runtime.CallInfo) {
	parent := t.parents.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": c.Trace.Traceparent, "tracestate": c.Trace.Tracestate,
	})
	_, span := t.tracer.Start(parent, method+" "+text(c.Tool),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.Start),
		trace.WithAttributes(
			str("mcp.method.name", method), str("gen_ai.operation.name", "execute_tool"), str("gen_ai.tool.name", c.Tool),
			str("sandboxd.call.id", c.ID), str("sandboxd.package", c.Package), str("sandboxd.principal", c.Principal)))
	t.calls.Store(c.ID, span)
}

func (t *Tracer) event(c runtime.CallInfo, name string, attrs ...attribute.KeyValue) {
	if span, ok := t.calls.Load(c.ID); ok {
		span.(trace.Span).AddEvent(name, trace.WithAttributes(attrs...))
	}
}

func (t *Tracer) commit(c runtime.CallInfo, took time.Duration) {
	span, ok := t.calls.Load(c.ID)
	if !ok {
		return
	}
	now := time.Now()
	ctx := trace.ContextWithSpan(context.Background(), span.(trace.Span))
	_, commit := t.tracer.Start(ctx, "commit", trace.WithTimestamp(now.Add(-took)))
	commit.End(trace.WithTimestamp(now))
}

func (t *Tracer) end(c runtime.CallInfo, r *runtime.Result) {
	found, ok := t.calls.LoadAndDelete(c.ID)
	if !ok {
		return
	}
	span := found.(trace.Span)
	span.SetAttributes(str("sandboxd.outcome", string(r.Outcome)), attribute.Bool("sandboxd.committed", r.Committed))
	// A span with error.type has the status error (mcp.md, span status). What the
	// error is in words may hold a guest's text: it is in the audit log, by the
	// call's id.
	if r.Outcome != runtime.OK {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(r.Outcome)))
		span.SetStatus(codes.Error, string(r.Outcome))
	}
	span.End()
}

func str(key, value string) attribute.KeyValue { return attribute.String(key, text(value)) }

// text returns the beginning of a text as valid UTF-8, which OTLP demands.
func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "\uFFFD") }
