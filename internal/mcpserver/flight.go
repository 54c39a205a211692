package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// flights are the requests of clients before 2026-07-28 that run over HTTP, so
// that notifications/cancelled, which comes in a request of its own, finds the
// one that it means. The SDK gives each request a session that ends with it.
// What has ended is forgotten. The zero value is ready.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight
}

type flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// flightKey names a request. Clients choose ids as they like, so the name holds
// the session and the principal, whom a client cannot choose.
func flightKey(principal, session string, id jsonrpc.ID) (string, error) {
	b, err := json.Marshal(id.Raw()) // tells 1 from "1"
	if err != nil {
		return "", err
	}
	return strings.Join([]string{principal, session, string(b)}, "\x00"), nil
}

// begin adds a request, unless one of that key runs; end it with the returned
// function.
func (f *flights) begin(key string) (end func(), ok bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey[key] != nil {
		cancel(nil)
		return nil, false
	}
	if f.byKey == nil {
		f.byKey = map[string]*flight{}
	}
	f.byKey[key] = &flight{ctx, cancel}
	return func() {
		f.mu.Lock()
		delete(f.byKey, key)
		f.mu.Unlock()
		cancel(nil)
	}, true
}

// find returns the request of that key, nil if none runs.
func (f *flights) find(key string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key]
}

// cancel ends the request of that key, if it runs.
func (f *flights) cancel(key string) {
	if fl := f.find(key); fl != nil {
		fl.cancel(ErrCancelled)
	}
}

// running counts the requests.
func (f *flights) running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey)
}
