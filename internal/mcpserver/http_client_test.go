package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/httpio"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
)

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// serveHTTP serves everybody, unless the options say otherwise.
func serveHTTP(t *testing.T, s *mcpserver.Server, o mcpserver.HTTPOptions) *httptest.Server {
	t.Helper()
	return serveBounded(t, s, o, 30*time.Second)
}

// serveBounded serves as the daemon does, with a bound of its clients' time.
func serveBounded(t *testing.T, s *mcpserver.Server, o mcpserver.HTTPOptions, bound time.Duration) *httptest.Server {
	t.Helper()
	if o.Authenticate == nil {
		o.Authenticate = mcpserver.Everybody
	}
	ts := httptest.NewServer(httpio.Bound(s.Handler(o), bound))
	t.Cleanup(func() {
		s.CloseStreams()
		ts.Close()
	})
	return ts
}

// reply is one message that a server sent, and how.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// request returns a JSON-RPC request as a client of that version sends it.
func request(version string, id any, method, params string) string {
	if version == modern {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		switch {
		case strings.Contains(params, `"_meta":{}`):
			params = strings.Replace(params, `"_meta":{}`, meta, 1)
		case strings.Contains(params, `"_meta":{`):
			params = strings.Replace(params, `"_meta":{`, strings.TrimSuffix(meta, "}")+",", 1)
		case params == "" || params == "{}":
			params = "{" + meta + "}"
		default:
			params = strings.TrimSuffix(params, "}") + "," + meta + "}"
		}
	}
	if params == "" {
		params = "{}"
	}
	b, err := json.Marshal(id)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, b, method, params)
}

// newPost returns a POST as a client of that version sends it; headers are
// pairs.
func newPost(t *testing.T, url, version, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if version != "" {
		r.Header.Set("Mcp-Protocol-Version", version)
	}
	if version == modern {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal([]byte(body), &m) == nil {
			r.Header.Set("Mcp-Method", m.Method)
			if m.Params.Name != "" {
				r.Header.Set("Mcp-Name", m.Params.Name)
			}
		}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func post(t *testing.T, url, version, body string, headers ...string) (*http.Response, []reply) {
	t.Helper()
	return do(t, newPost(t, url, version, body, headers...))
}

// do sends a request and reads all that comes back.
func do(t *testing.T, r *http.Request) (*http.Response, []reply) {
	t.Helper()
	res, rs, err := fetch(r)
	if err != nil {
		t.Fatal(err)
	}
	return res, rs
}

func fetch(r *http.Request) (*http.Response, []reply, error) {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	rs, err := replies(res, b)
	return res, rs, err
}

func replies(res *http.Response, b []byte) ([]reply, error) {
	bodies := [][]byte{b}
	switch res.Header.Get("Content-Type") {
	case "application/json":
	case "text/event-stream":
		bodies = nil
		for line := range bytes.Lines(b) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				bodies = append(bodies, data)
			}
		}
	default:
		return nil, nil
	}
	var rs []reply
	for _, b := range bodies {
		if !bytes.HasPrefix(b, []byte("[")) {
			b = slices.Concat([]byte("["), b, []byte("]"))
		}
		var more []reply
		if err := json.Unmarshal(b, &more); err != nil {
			return nil, err
		}
		rs = append(rs, more...)
	}
	return rs, nil
}
