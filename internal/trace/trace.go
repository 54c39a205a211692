// Package trace sends a span for each call of a tool to an OpenTelemetry
// receiver, as the conventions for MCP servers have it (OpenTelemetry GenAI
// semantic conventions, docs/gen-ai/mcp.md). It keeps nothing global and takes
// neither the receiver nor what is sent to it from the environment.
package trace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// ErrOptions is matched by the error of [New] for options that cannot be.
var ErrOptions = errors.New("options of traces")

// What is waiting for the receiver, and what a span holds. Spans beyond are
// dropped: a call never waits for a receiver.
const (
	queueSize     = 2048
	batchSize     = 512
	batchWait     = 2 * time.Second
	exportTimeout = 10 * time.Second
	maxEvents     = 64
	maxText       = 1024 // bytes of an attribute's value
)

// Options say where spans go.
type Options struct {
	// Endpoint is the URL of an OTLP receiver over HTTP, http or https, such as
	// http://127.0.0.1:4318. Spans go to /v1/traces below it.
	Endpoint string
	// Version is the version of the service in the spans.
	Version string
	// Sample is the share of the calls that get a span, 0 to 1, among those whose
	// caller sends no trace context; the others follow their caller's decision.
	// 0: none.
	Sample float64
	// OnError learns of spans that could not be sent. It may be called by several
	// goroutines. Nil: nobody is told.
	OnError func(error)
}

// Tracer makes spans of calls and sends them. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	exporter *otlptrace.Exporter
	tracer   trace.Tracer
	parents  propagation.TraceContext
	calls    sync.Map // the running calls' spans by call id: trace.Span
}

// New returns a tracer. It makes no connection: a receiver that is not there
// costs the spans, and [Options].OnError hears of it.
func New(ctx context.Context, o Options) (*Tracer, error) {
	endpoint, err := tracesURL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if !(o.Sample >= 0 && o.Sample <= 1) {
		return nil, fmt.Errorf("%w: sample %v: a share from 0 to 1", ErrOptions, o.Sample)
	}
	t := &Tracer{}
	t.exporter, err = otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithHeaders(map[string]string{}),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithHTTPClient(&http.Client{
			Timeout:   exportTimeout,
			Transport: &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: exportTimeout},
			// A receiver is where the operator says, and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", endpoint, err)
	}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName("sandboxd"), semconv.ServiceVersion(o.Version))),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))),
		sdktrace.WithRawSpanLimits(limits()),
		sdktrace.WithBatcher(reporter{t.exporter, o.OnError},
			sdktrace.WithMaxQueueSize(queueSize), sdktrace.WithMaxExportBatchSize(batchSize),
			sdktrace.WithBatchTimeout(batchWait), sdktrace.WithExportTimeout(exportTimeout)),
	)
	t.tracer = t.provider.Tracer("github.com/sandboxd/sandboxd", trace.WithInstrumentationVersion(o.Version))
	return t, nil
}

func limits() sdktrace.SpanLimits {
	l := sdktrace.SpanLimits{
		AttributeValueLengthLimit: maxText, AttributeValueDepthLimit: 4,
		AttributeCountLimit: 32, EventCountLimit: maxEvents, LinkCountLimit: 1,
		AttributePerEventCountLimit: 16, AttributePerLinkCountLimit: 1,
	}
	return l
}

func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: endpoint: %w", ErrOptions, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%w: endpoint %q: a URL such as http://127.0.0.1:4318 is needed, without user, query or fragment", ErrOptions, endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// Shutdown sends the spans of the calls that have ended, until ctx ends, and
// stops. Spans that end after it are dropped.
func (t *Tracer) Shutdown(ctx context.Context) error {
	err := t.provider.Shutdown(ctx)
	// The provider leaves an export that outlives ctx running: stop it.
	return errors.Join(err, t.exporter.Shutdown(ctx))
}

// reporter tells of failed exports. The SDK would tell a global handler.
type reporter struct {
	sdktrace.SpanExporter
	onError func(error)
}

func (r reporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil && r.onError != nil {
		r.onError(fmt.Errorf("spans of %d calls are lost: %w", countCalls(spans), err))
	}
	return nil
}

func countCalls(spans []sdktrace.ReadOnlySpan) (n int) {
	for _, s := range spans {
		if s.SpanKind() == trace.SpanKindServer {
			n++
		}
	}
	return n
}
