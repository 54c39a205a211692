package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/mcpserver"
)

// A batch that fits is answered as one, each of its calls on its own.
func TestHTTPBatch(t *testing.T) {
	p, seen := recording()
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{MaxRequests: 3})
	var calls []string
	for id := range 3 {
		calls = append(calls, request("", id+1, "tools/call", `{"name":"a"}`))
	}
	for range 3 { // the room of one is free for the next
		res, rs := post(t, ts.URL, "", "["+strings.Join(calls, ",")+"]")
		if res.StatusCode != http.StatusOK || len(rs) != 3 {
			t.Fatalf("%d, %+v", res.StatusCode, rs)
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d calls", len(seen))
	}
}

// More requests than there is room for are told to come back, and the room is
// free again when the others are answered.
func TestHTTPBusy(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s := newServer(t, slowPackage(func(context.Context) { started <- struct{}{}; <-release }))
	ts := serveHTTP(t, s, mcpserver.HTTPOptions{MaxRequests: 2})
	statuses := make(chan int, 2)
	for range 2 {
		go func() {
			res, err := http.DefaultClient.Do(newPost(t, ts.URL, legacy, request(legacy, 1, "tools/call", `{"name":"slow"}`)))
			if err != nil {
				statuses <- 0
				return
			}
			defer res.Body.Close()
			_, _ = io.Copy(io.Discard, res.Body)
			statuses <- res.StatusCode
		}()
		<-started
	}
	res, rs := post(t, ts.URL, modern, request(modern, 7, "tools/list", ""))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || len(rs) != 1 || rs[0].Error == nil || !strings.Contains(rs[0].Error.Message, "try again in 1 s") {
		t.Errorf("third request: %d, %v, %+v", res.StatusCode, res.Header, rs)
	}
	close(release)
	for range 2 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if res, _ := post(t, ts.URL, modern, request(modern, 8, "tools/list", "")); res.StatusCode != http.StatusOK {
		t.Errorf("after the calls: %d", res.StatusCode)
	}
}

// Subscriptions take no room from calls, are bounded, outlast quiet times, and
// end well with CloseStreams.
func TestHTTPSubscriptions(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	p, _ := recording()
	s := newServer(t, p)
	ts := serveBounded(t, s, mcpserver.HTTPOptions{MaxRequests: 1}, limit)
	listen := request(modern, 1, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
	res, err := http.DefaultClient.Do(newPost(t, ts.URL, modern, listen))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if second, _ := post(t, ts.URL, modern, listen); second.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("second subscription: %d", second.StatusCode)
	}
	if list, _ := post(t, ts.URL, modern, request(modern, 2, "tools/list", "")); list.StatusCode != http.StatusOK {
		t.Errorf("list beside a subscription: %d", list.StatusCode)
	}
	time.Sleep(limit + limit/4) // it is quiet: there is nothing to wait for
	s.CloseStreams()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("subscription: %v", err)
	}
	if late, _ := post(t, ts.URL, modern, listen); late.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("subscription after CloseStreams: %d", late.StatusCode)
	}
}
