//lint:file-ignore SA1019 clients of both eras ask for log messages, which 2026-07-28 deprecates

package clients

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goClient is a client of the Go SDK.
type goClient struct {
	session *mcp.ClientSession
	changed chan struct{}
	level   string

	mu       sync.Mutex
	progress []float64
	log      []string
	reported context.CancelFunc // called at each report of progress
	noted    chan struct{}      // has a value after each note
}

// goSDK returns the kind of client of the Go SDK that asks for a version of the
// protocol.
func goSDK(version string) client {
	return client{"go-sdk", version, func(t *testing.T, to target) session {
		c := &goClient{changed: make(chan struct{}, 1), noted: make(chan struct{}, 1), reported: func() {}, level: to.Log}
		m := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				select {
				case c.changed <- struct{}{}:
				default: // told already
				}
			},
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.progress = append(c.progress, r.Params.Progress)
				c.reported()
				c.note()
			},
			LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
				c.mu.Lock()
				defer c.mu.Unlock()
				s, _ := r.Params.Data.(string)
				c.log = append(c.log, s)
				c.note()
			},
		})
		s, err := m.Connect(t.Context(), goTransport(to), &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		c.session = s
		if to.Log != "" && version < "2026-07-28" {
			if err := s.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(to.Log)}); err != nil {
				t.Fatalf("logging/setLevel: %v", err)
			}
		}
		return c
	}}
}

func goTransport(to target) mcp.Transport {
	if to.URL == "" {
		cmd := exec.Command(to.Command[0], to.Command[1:]...)
		cmd.Stderr = os.Stderr
		return &mcp.CommandTransport{Command: cmd}
	}
	return &mcp.StreamableClientTransport{Endpoint: to.URL, HTTPClient: &http.Client{Transport: bearer(to.Token)}}
}

// bearer adds a token to each request; empty: none.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (c *goClient) Protocol() string { return c.session.InitializeResult().ProtocolVersion }

func (c *goClient) List(ctx context.Context) ([]listed, error) {
	r, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return nil, goError(err)
	}
	var ls []listed
	return ls, recode(r.Tools, &ls)
}

func (c *goClient) Call(ctx context.Context, req call) (*reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.progress, c.log, c.reported = nil, nil, func() {}
	if req.Cancel {
		c.reported = cancel
	}
	c.mu.Unlock()
	p := &mcp.CallToolParams{Name: req.Tool, Arguments: req.Arguments}
	if c.level != "" && c.Protocol() >= "2026-07-28" {
		p.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": c.level}
	}
	p.SetProgressToken(req.Tool)
	res, err := c.session.CallTool(ctx, p)
	if err == nil {
		c.await(ctx, req.Notes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &reply{Progress: c.progress, Log: c.log}
	switch {
	case err != nil && ctx.Err() != nil && req.Cancel:
		r.Cancelled = true
		return r, nil
	case err != nil:
		return nil, goError(err)
	}
	return r, recode(res, &r.Result)
}

// note says that there is another one.
func (c *goClient) note() {
	select {
	case c.noted <- struct{}{}:
	default:
	}
}

// await waits for so many notes: the SDK hands them out by a goroutine of its own,
// although they came before the result.
func (c *goClient) await(ctx context.Context, notes int) {
	for {
		c.mu.Lock()
		all := len(c.progress) + len(c.log)
		c.mu.Unlock()
		if all >= notes {
			return
		}
		select {
		case <-c.noted:
		case <-ctx.Done():
			return
		}
	}
}

func (c *goClient) Changed(ctx context.Context) error {
	select {
	case <-c.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *goClient) Close() error { return c.session.Close() }

func goError(err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &protocolError{Code: int(e.Code), Message: e.Message}
	}
	return err
}
