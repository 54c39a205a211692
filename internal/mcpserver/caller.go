package mcpserver

import (
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

// What the HTTP side tells a tool's handler travels as headers, the one thing
// that the SDK hands on. A colon cannot be in the name of a header that a client
// sends (RFC 9110, section 5.6.2), and net/http refuses it: these are ours.
const (
	headerPrincipal  = ":principal"
	headerFlight     = ":flight"
	headerCapability = ":capability"
)

// caller is who calls.
type caller struct {
	principal string // empty: the one user of a stream
	flight    string // key of the request in [flights]; empty: it has none
	// capabilities were declared before this request, which does not tell them.
	capabilities []string
}

// callerOf returns who sent a request. A request over HTTP that did not come
// through this package's handler is an error.
func callerOf(req *mcp.CallToolRequest) (caller, error) {
	if req.Extra == nil || req.Extra.Header == nil {
		return caller{}, nil
	}
	h := req.Extra.Header
	c := caller{first(h, headerPrincipal), first(h, headerFlight), h[headerCapability]}
	if c.principal == "" {
		return caller{}, errors.New("principal: missing")
	}
	return c, nil
}

// mark returns the headers with the caller in them, and without the client's
// credentials.
func (c caller) mark(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Authorization")
	h.Del("Cookie")
	h[headerPrincipal] = []string{c.principal}
	delete(h, headerFlight)
	delete(h, headerCapability)
	if len(c.capabilities) > 0 {
		h[headerCapability] = c.capabilities
	}
	if c.flight != "" {
		h[headerFlight] = []string{c.flight}
	}
	return h
}

// first reads a header whose name is not in the canonical form.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Bounds of a trace context in bytes: a traceparent of version 00 has 55, and a
// tracestate of at least 512 is to be kept (W3C Trace Context, section 3.3.1.5).
const (
	maxTraceparent = 128
	maxTracestate  = 1024
)

// traceOf returns the caller's trace: that of _meta, whose bare keys the
// protocol reserves for it, else that of the HTTP request.
func traceOf(req *mcp.CallToolRequest) runtime.TraceContext {
	if req.Params != nil {
		parent, _ := req.Params.Meta["traceparent"].(string)
		state, _ := req.Params.Meta["tracestate"].(string)
		if t := boundedTrace(parent, state); t != (runtime.TraceContext{}) {
			return t
		}
	}
	if req.Extra == nil {
		return runtime.TraceContext{}
	}
	return boundedTrace(req.Extra.Header.Get("Traceparent"), req.Extra.Header.Get("Tracestate"))
}

// boundedTrace drops what is too long, and a state without its parent.
func boundedTrace(parent, state string) runtime.TraceContext {
	if parent == "" || len(parent) > maxTraceparent {
		return runtime.TraceContext{}
	}
	if len(state) > maxTracestate {
		state = ""
	}
	return runtime.TraceContext{Traceparent: parent, Tracestate: state}
}
