package trace_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/trace"
	"github.com/sandboxd/sandboxd/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP receiver over HTTP that keeps what it gets.
type receiver struct {
	*httptest.Server
	mu        sync.Mutex
	spans     []*tracepb.Span
	resources map[string]string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{resources: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	export, err := decode(q)
	if err != nil || q.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(q.URL.Path, err), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range export.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			r.resources[a.Key] = a.Value.GetStringValue()
		}
		for _, s := range rs.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
}

func decode(q *http.Request) (*collectorpb.ExportTraceServiceRequest, error) {
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			return nil, err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	export := &collectorpb.ExportTraceServiceRequest{}
	return export, proto.Unmarshal(b, export)
}

func (r *receiver) named(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q among %d", name, len(r.spans))
	return nil
}

func newTracer(t *testing.T, o trace.Options) *trace.Tracer {
	t.Helper()
	tr, err := trace.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func shutdown(t *testing.T, tr *trace.Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := tr.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func texts(kvs []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.Key] = fmt.Sprint(v.BoolValue)
		}
	}
	return out
}

func hasAttributes(t *testing.T, kvs []*commonpb.KeyValue, want map[string]string) {
	t.Helper()
	got := texts(kvs)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("attributes %v, want %v", got, want)
	}
}

func info(id, tool string) runtime.CallInfo {
	return runtime.CallInfo{ID: id, Principal: "alice", Package: "notes", Tool: tool, Start: time.Now()}
}

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func TestSpans(t *testing.T) {
	r := newReceiver(t)
	tr := newTracer(t, trace.Options{Endpoint: r.URL, Version: "1.2.3", Sample: 1})
	o := tr.Observer()

	ok := info("c1", "add_note")
	ok.Trace = runtime.TraceContext{Traceparent: "00-" + traceID + "-" + spanID + "-01", Tracestate: "rojo=1"}
	liar := info("c2", "list_notes")
	o.CallStart(ok)
	o.CallStart(liar)
	o.Violation(liar, capabilities.Violation{Hint: capabilities.ReadOnlyHint, Operation: capabilities.OpWrite, Object: "/data/\xff" + strings.Repeat("x", 5000), Phase: capabilities.PhaseOperation})
	o.Denial(liar, capabilities.Denial{Capability: capabilities.CapLink, Operation: capabilities.OpCreate, Object: "/data/l", Errno: capabilities.EPERM})
	o.Conflict(ok)
	o.Commit(ok, 3*time.Millisecond)
	o.CallEnd(ok, &runtime.Result{Outcome: runtime.OK, Committed: true})
	o.CallEnd(liar, &runtime.Result{Outcome: runtime.Violation, Err: errors.New("secret")})
	// What comes before the start or after the end of a call is of no span.
	o.Conflict(ok)
	o.Commit(liar, 0)
	o.CallEnd(liar, &runtime.Result{Outcome: runtime.OK})
	shutdown(t, tr)

	if len(r.spans) != 3 || r.resources["service.name"] != "sandboxd" || r.resources["service.version"] != "1.2.3" {
		t.Fatalf("%d spans, resources %v", len(r.spans), r.resources)
	}
	s := r.named(t, "tools/call add_note")
	if s.Kind != tracepb.Span_SPAN_KIND_SERVER || hex.EncodeToString(s.TraceId) != traceID || hex.EncodeToString(s.ParentSpanId) != spanID || s.TraceState != "rojo=1" {
		t.Errorf("span: %v", s)
	}
	if s.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET || len(s.Events) != 1 || s.Events[0].Name != "sandboxd.conflict" {
		t.Errorf("status %v, events %v", s.Status, s.Events)
	}
	want := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add_note",
		"sandboxd.call.id": "c1", "sandboxd.package": "notes", "sandboxd.principal": "alice",
		"sandboxd.outcome": "ok", "sandboxd.committed": "true",
	}
	hasAttributes(t, s.Attributes, want)
	commit := r.named(t, "commit")
	if string(commit.ParentSpanId) != string(s.SpanId) || commit.EndTimeUnixNano-commit.StartTimeUnixNano != 3_000_000 {
		t.Errorf("commit: %v", commit)
	}

	s = r.named(t, "tools/call list_notes")
	if len(s.ParentSpanId) != 0 || s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.Status.Message != "violation" || len(s.Events) != 2 {
		t.Fatalf("span: %v", s)
	}
	want["gen_ai.tool.name"], want["sandboxd.call.id"] = "list_notes", "c2"
	want["sandboxd.outcome"], want["sandboxd.committed"], want["error.type"] = "violation", "false", "violation"
	hasAttributes(t, s.Attributes, want)
	if got := texts(s.Events[0].Attributes); s.Events[0].Name != "sandboxd.violation" || got["sandboxd.hint"] != "readOnlyHint" ||
		got["sandboxd.operation"] != "write" || got["sandboxd.phase"] != "operation" || len(got["sandboxd.object"]) > 1030 || !strings.HasPrefix(got["sandboxd.object"], "/data/\uFFFDx") {
		t.Errorf("violation: %v", s.Events[0])
	}
	hasAttributes(t, s.Events[1].Attributes, map[string]string{
		"sandboxd.capability": "link", "sandboxd.operation": "create", "sandboxd.object": "/data/l", "sandboxd.errno": "EPERM",
	})
}

// A trace context that is none makes a span without a parent, and no error.
func TestHostileTraceContext(t *testing.T) {
	for _, tc := range []runtime.TraceContext{
		{Traceparent: "00-00000000000000000000000000000000-" + spanID + "-01"},
		{Traceparent: "ff-" + traceID + "-" + spanID + "-01"},
		{Traceparent: "00-" + strings.ToUpper(traceID) + "-" + spanID + "-01"},
		{Traceparent: strings.Repeat("0", 1<<16)},
		{Tracestate: "a=1"},
		{Traceparent: "\x1b[31m", Tracestate: "\xff"},
	} {
		r := newReceiver(t)
		tr := newTracer(t, trace.Options{Endpoint: r.URL + "/", Sample: 1})
		c := info("c", "t")
		c.Trace = tc
		tr.Observer().CallStart(c)
		tr.Observer().CallEnd(c, &runtime.Result{Outcome: runtime.OK})
		shutdown(t, tr)
		if s := r.named(t, "tools/call t"); len(s.ParentSpanId) != 0 || s.TraceState != "" {
			t.Errorf("%+v: %v", tc, s)
		}
	}
}

// What a caller decided holds; the share is of the others.
func TestSample(t *testing.T) {
	for _, c := range []struct {
		sample float64
		parent string
		want   int
	}{
		{0, "", 0},
		{1, "", 200},
		{0, "01", 200},
		{1, "00", 0},
		{0.5, "", -1},
	} {
		r := newReceiver(t)
		tr := newTracer(t, trace.Options{Endpoint: r.URL + "/v1/traces", Sample: c.sample})
		for i := range 200 {
			in := info(fmt.Sprint(i), "t")
			if c.parent != "" {
				in.Trace.Traceparent = "00-" + traceID + "-" + spanID + "-" + c.parent
			}
			tr.Observer().CallStart(in)
			tr.Observer().CallEnd(in, &runtime.Result{Outcome: runtime.OK})
		}
		shutdown(t, tr)
		if n := len(r.spans); c.want >= 0 && n != c.want || c.want < 0 && (n == 0 || n == 200) {
			t.Errorf("sample %v, parent %q: %d spans of 200 calls, want %d", c.sample, c.parent, n, c.want)
		}
	}
}

// A receiver that is not there, or that never answers, costs spans: no call
// waits or fails, and who asked is told.
func TestReceiverIsDown(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		select {
		case <-stop:
		case <-q.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(stop)
	for _, endpoint := range []string{gone.URL, silent.URL} {
		errs := make(chan error, 100)
		tr := newTracer(t, trace.Options{Endpoint: endpoint, Sample: 1, OnError: func(err error) { errs <- err }})
		o := tr.Observer()
		start := time.Now()
		for i := range 5000 { // more than are kept for the receiver
			in := info(fmt.Sprint(i), "t")
			o.CallStart(in)
			o.CallEnd(in, &runtime.Result{Outcome: runtime.OK})
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: 5000 calls took %v", endpoint, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_ = tr.Shutdown(ctx) // an error where the receiver is silent
		cancel()
		select {
		case <-errs:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: nobody was told", endpoint)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, o := range []trace.Options{
		{},
		{Endpoint: "127.0.0.1:4318"},
		{Endpoint: "grpc://127.0.0.1:4317"},
		{Endpoint: "http://user:secret@host"},
		{Endpoint: "http://host?x=1"},
		{Endpoint: "http://\x7f"},
		{Endpoint: "http://host", Sample: -0.1},
		{Endpoint: "http://host", Sample: 1.1},
		{Endpoint: "http://host", Sample: math.NaN()},
	} {
		if tr, err := trace.New(t.Context(), o); tr != nil || !errors.Is(err, trace.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The environment sends spans nowhere else and adds no header.
func TestEnvironment(t *testing.T) {
	elsewhere := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", elsewhere.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", elsewhere.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-secret=1")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	got := make(chan http.Header, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { got <- q.Header }))
	defer s.Close()
	tr := newTracer(t, trace.Options{Endpoint: s.URL, Sample: 1})
	tr.Observer().CallStart(info("c", "t"))
	tr.Observer().CallEnd(info("c", "t"), &runtime.Result{Outcome: runtime.OK})
	shutdown(t, tr)
	if h := <-got; h.Get("x-secret") != "" || len(elsewhere.spans) != 0 {
		t.Errorf("header %v, %d spans elsewhere", h, len(elsewhere.spans))
	}
}
