package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

// HTTPOptions of [Server.Handler]. The zero value of a field is its default.
type HTTPOptions struct {
	// Authenticate returns who sends a request, or an error, which the client does
	// not see. Default: nobody is let in. [Everybody] lets everybody in.
	Authenticate func(*http.Request) (principal string, err error)
	MaxBody      int64 // bytes of a request's body; default: 4 MiB
	// MaxRequests is how many JSON-RPC messages are handled at once, of one
	// principal besides LocalPrincipal at most half as many, those of a
	// batch counted one by one, and how many subscriptions are open besides.
	// Default: 256.
	MaxRequests int
	// JSONResponse answers with application/json instead of an event stream, which
	// has no room for progress and log messages. Default: false.
	JSONResponse bool
}

// Everybody authenticates each request as [runtime.LocalPrincipal]. It is for
// where there is one user.
func Everybody(*http.Request) (principal string, err error) { return runtime.LocalPrincipal, nil }

var errNobody = errors.New("nobody is let in: no authentication is set")

func nobody(*http.Request) (string, error) { return "", errNobody }

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	// sessionless is the first version without sessions: there the end of the HTTP
	// request is what cancels (basic/patterns/cancellation.mdx).
	sessionless = "2026-07-28"

	retryAfter = "1" // seconds
)

// httpHandler answers MCP over Streamable HTTP. It keeps nothing of a client
// between requests, so that any of several servers can answer the next one.
type httpHandler struct {
	server   *Server
	options  HTTPOptions
	requests *slots
	streams  *slots // of subscriptions, which last: they take no room from calls
	sdk      http.Handler
}

// Handler returns the server's Streamable HTTP endpoint, for clients of
// 2026-07-28 and before. It answers on whatever path it is mounted. It refuses
// requests of other web sites and of names that were rebound to this machine.
// It does not bound how long a client takes to send a request or to take an
// answer: the http.Server around it needs httpio.Bound as its outermost handler.
func (s *Server) Handler(o HTTPOptions) http.Handler {
	if o.Authenticate == nil {
		o.Authenticate = nobody
	}
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 256
	}
	h := &httpHandler{
		server: s, options: o,
		requests: newSlots(o.MaxRequests), streams: newSlots(o.MaxRequests),
		sdk: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			Stateless:                    true,
			JSONResponse:                 o.JSONResponse,
			Logger:                       s.mcpLog(),
			MaxRequestBodyBytes:          o.MaxBody,
			PropagateRequestCancellation: true,
		}),
	}
	return http.NewCrossOriginProtection().Handler(h)
}

// ServeHTTP answers one request.
func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	principal, ok := h.authenticate(w, r)
	if !ok {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, principal)
	case http.MethodDelete:
		// A client of 2025-11-25 ends its session: there is nothing to end.
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, DELETE") // RFC 9110, section 15.5.6
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (h *httpHandler) authenticate(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	principal, err := h.options.Authenticate(r)
	if err == nil && principal != "" {
		return principal, true
	}
	challenge := "Bearer"
	if r.Header.Get("Authorization") != "" {
		challenge = `Bearer error="invalid_token"` // RFC 6750, section 3.1
	}
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, "unauthorized", http.StatusUnauthorized)
	h.server.log.Debug("request not authenticated", "from", r.RemoteAddr, "error", err)
	return "", false
}

// post answers a POST: a message, or a batch of a client before 2025-06-18.
func (h *httpHandler) post(w http.ResponseWriter, r *http.Request, principal string) {
	if !h.requests.take(principal, 1) {
		busy(w, jsonrpc.ID{})
		return
	}
	taken := 1
	defer func() { h.requests.give(principal, taken) }()
	body, ok := h.body(w, r)
	if !ok {
		return
	}
	ms, err := parseMessages(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, jsonrpc.ID{}, jsonrpc.CodeParseError, err.Error())
		return
	}
	if more := len(ms.list) - 1; more > 0 {
		if !h.requests.take(principal, more) {
			busy(w, jsonrpc.ID{})
			return
		}
		taken += more
	}
	if ms.listens() {
		if !h.streams.take(principal, 1) {
			busy(w, ms.id())
			return
		}
		defer h.streams.give(principal, 1)
		h.requests.give(principal, taken)
		taken = 0
		ctx, release, ok := h.server.stream(r.Context())
		if !ok {
			busy(w, ms.id())
			return
		}
		defer release()
		r = r.WithContext(ctx)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.forward(w, r, principal, ms)
}

// forward hands a request to the SDK, with what its tool handlers need to know
// of it.
func (h *httpHandler) forward(w http.ResponseWriter, r *http.Request, principal string, ms *messages) {
	c := caller{principal: principal}
	legacy := r.Header.Get(headerVersion) < sessionless
	session := r.Header.Get(headerSession)
	if legacy {
		c.capabilities = sessionCapabilities(session)
	}
	if legacy && ms.calls() && validSession(session) {
		key, err := flightKey(principal, session, ms.id())
		if err != nil {
			writeError(w, http.StatusBadRequest, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, err.Error())
			return
		}
		end, ok := h.server.flights.begin(key)
		if !ok {
			writeError(w, http.StatusBadRequest, ms.id(), jsonrpc.CodeInvalidRequest, "id: a request of this id runs in this session")
			return
		}
		defer end()
		c.flight = key
	}
	if legacy && ms.initializes() {
		w.Header().Set(headerSession, newSession(ms.declared()))
	}
	r = r.WithContext(r.Context()) // a copy: the headers are the caller's
	r.Header = c.mark(r.Header)
	out := &answerWriter{ResponseWriter: w}
	h.sdk.ServeHTTP(out, r)
	if legacy && out.status == http.StatusAccepted && validSession(session) {
		h.cancel(principal, session, ms)
	}
}

// cancel ends the requests that a client has cancelled, after the SDK has found
// nothing wrong with the HTTP request that says so.
func (h *httpHandler) cancel(principal, session string, ms *messages) {
	for _, id := range ms.cancelled() {
		if key, err := flightKey(principal, session, id); err == nil {
			h.server.flights.cancel(key)
		}
	}
}

// body reads a request's body. What a client still sends of one that is refused
// is not read: its connection ends.
func (h *httpHandler) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBody))
	if err == nil {
		return b, true
	}
	w.Header().Set("Connection", "close")
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "body: too large")
		return nil, false
	}
	writeError(w, http.StatusRequestTimeout, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "body: not received")
	return nil, false
}

func busy(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", retryAfter)
	writeError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternalError, "server is busy: too many requests; try again in "+retryAfter+" s")
}

// writeError answers with an error of JSON-RPC. The zero id is null.
func writeError(w http.ResponseWriter, status int, id jsonrpc.ID, code int, message string) {
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id.Raw(), "error": map[string]any{"code": code, "message": message},
	})
	if err != nil {
		status, b = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may be gone
}

// answerWriter remembers the status.
type answerWriter struct {
	http.ResponseWriter

	status int
}

func (w *answerWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// stream gives a subscription a context that CloseStreams ends.
func (s *Server) stream(ctx context.Context) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancel(ctx)
	key := &cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		cancel()
		return nil, nil, false
	}
	s.streams[key] = struct{}{}
	return ctx, func() {
		s.mu.Lock()
		delete(s.streams, key)
		s.mu.Unlock()
		cancel()
	}, true
}

// CloseStreams ends the subscriptions over HTTP and takes no new ones: they last
// until their clients leave, and http.Server's Shutdown waits for them. It is
// for its RegisterOnShutdown.
func (s *Server) CloseStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.streams {
		(*c)()
	}
	s.streams = nil
}
