package mcpserver_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// logRecords keeps what is logged, of every level.
type logRecords struct {
	mu  sync.Mutex
	all []slog.Record
}

func (l *logRecords) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecords) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecords) WithGroup(string) slog.Handler            { return l }

func (l *logRecords) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return nil
}

func (l *logRecords) take() []slog.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// Whatever a client sends, the operator's log has no line of it above debug.
func TestClientsDoNotFillTheLog(t *testing.T) {
	var log logRecords
	p, _ := demanding("sampling")
	p.tools = append(p.tools, newTool("b", capabilities.Claim{}))
	s, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{p}, Logger: slog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	quiet := func(what string, loud bool) {
		t.Helper()
		rs := log.take()
		for _, r := range rs {
			if r.Level > slog.LevelDebug {
				t.Errorf("%s: logged at %s: %s", what, r.Level, r.Message)
			}
		}
		if loud && len(rs) == 0 {
			t.Errorf("%s: not logged at all", what) // the SDK's lines are lost, or the case is none
		}
	}

	ts := serveHTTP(t, s, mcpserver.HTTPOptions{})
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "notifications/initialized"} {
		post(t, ts.URL, modern, request(modern, 1, method, ""))
		quiet("removed method "+method, true)
	}
	for _, body := range []string{
		``, `[`, `[]`, `{}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1}`,
		request(legacy, 1, "no/such", ""), request(legacy, 1, "tools/call", `{"name":"none"}`), request(legacy, 1, "tools/call", `{"name":"a"}`),
		request(legacy, 1, "tools/call", `{"name":7}`), request(legacy, 1, "initialize", `{"protocolVersion":7}`), request(legacy, 1, "completion/complete", ""),
	} {
		for _, version := range []string{"", legacy, modern, "1999-01-01", "\t"} {
			post(t, ts.URL, version, body)
			quiet(version+" "+body, false)
		}
	}

	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	first, _, _ := strings.Cut(initLine, "\n")
	for name, in := range map[string]string{
		"initialized before initialize": initialized,
		"initialized twice":             initLine + initialized,
		"initialize twice":              initLine + first + "\n",
		"call before initialize":        strings.Replace(callLine, "slow", "b", 1),
	} {
		if err := s.ServeStdio(t.Context(), strings.NewReader(in), io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		quiet(name, true)
	}
	for _, in := range []string{"hello\n", "{\n", `{"jsonrpc":"1.0"}` + "\n", initLine + "\x00\n", initLine + `{"jsonrpc":"2.0","id":9,"result":{}}` + "\n"} {
		_ = s.ServeStdio(t.Context(), strings.NewReader(in), io.Discard) // how it ends is not the matter here
		quiet(in, false)
	}
}

// Faults of the host are still errors.
func TestHostFaultsAreLogged(t *testing.T) {
	var log logRecords
	p, _ := recording()
	p.call = func(context.Context, runtime.Request) *runtime.Result {
		return &runtime.Result{CallID: "c", Outcome: runtime.HostError, Err: errHost}
	}
	s, err := mcpserver.New(mcpserver.Options{Packages: []mcpserver.Package{p}, Logger: slog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	ts := serveHTTP(t, s, mcpserver.HTTPOptions{})
	post(t, ts.URL, legacy, request(legacy, 1, "tools/call", `{"name":"a"}`))
	errs := 0
	for _, r := range log.take() {
		if r.Level == slog.LevelError {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("%d errors", errs)
	}
}
