package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
)

// talking returns a package whose tool says things while it runs. What it says
// after its end is kept for the test to say.
func talking(say func(runtime.Notify)) (p *fakePackage, kept chan runtime.Notify) {
	kept = make(chan runtime.Notify, 100)
	p = &fakePackage{name: "p", own: "p", tools: []*runtime.Tool{newTool("talk", capabilities.Claim{})}}
	p.call = func(_ context.Context, r runtime.Request) *runtime.Result {
		say(r.Notify)
		kept <- r.Notify
		return &runtime.Result{CallID: "c", Outcome: runtime.OK, Output: textOutput("done")}
	}
	return p, kept
}

func sayAll(n runtime.Notify) {
	if n.Progress != nil {
		n.Progress(runtime.Progress{Progress: 50, Total: 100, Message: "half"})
		n.Progress(runtime.Progress{Progress: 100, Total: 100})
	}
	if n.Log != nil {
		n.Log(runtime.LogMessage{Level: "debug", Text: "small"})
		n.Log(runtime.LogMessage{Level: "warning", Text: "large"})
	}
}

const (
	half    = `notifications/progress {"message":"half","progress":50,"progressToken":"t","total":100}`
	whole   = `notifications/progress {"progress":100,"progressToken":"t","total":100}`
	debug   = `notifications/message {"data":"small","level":"debug","logger":"talk"}`
	warning = `notifications/message {"data":"large","level":"warning","logger":"talk"}`
)

// shown returns what came, in short.
func shown(rs []reply) []string {
	var out []string
	for _, r := range rs {
		if r.Method == "" {
			out = append(out, "result")
			continue
		}
		var p map[string]any
		_ = json.Unmarshal(r.Params, &p)
		delete(p, "_meta")
		b, _ := json.Marshal(p)
		out = append(out, r.Method+" "+string(b))
	}
	return out
}

var noteCases = map[string]struct {
	version, meta string
	level         string // of logging/setLevel, streams only
	http, stream  string
}{
	"nothing asked, 2026": {modern, `{}`, "", "result", "result"},
	"progress, 2026":      {modern, `{"progressToken":"t"}`, "", half + "\n" + whole + "\nresult", half + "\n" + whole + "\nresult"},
	"log, 2026":           {modern, `{"io.modelcontextprotocol/logLevel":"debug"}`, "", debug + "\n" + warning + "\nresult", debug + "\n" + warning + "\nresult"},
	"both, 2026": {
		modern, `{"progressToken":"t","io.modelcontextprotocol/logLevel":"info"}`, "",
		half + "\n" + whole + "\n" + warning + "\nresult", half + "\n" + whole + "\n" + warning + "\nresult",
	},
	// Over HTTP nothing is kept of a client of 2025-11-25: the server decides what
	// it logs, as the protocol allows, and that is from info on.
	"nothing asked, 2025": {legacy, `{}`, "", warning + "\nresult", "result"},
	"progress, 2025":      {legacy, `{"progressToken":"t"}`, "", half + "\n" + whole + "\n" + warning + "\nresult", half + "\n" + whole + "\nresult"},
	"log, 2025":           {legacy, `{}`, "debug", warning + "\nresult", debug + "\n" + warning + "\nresult"},
}

func TestNotesOverHTTP(t *testing.T) {
	for name, c := range noteCases {
		p, kept := talking(sayAll)
		ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
		_, rs := post(t, ts.URL, c.version, request(c.version, 1, "tools/call", `{"name":"talk","_meta":`+c.meta+`}`))
		if got := strings.Join(shown(rs), "\n"); got != c.http {
			t.Errorf("%s:\n%s", name, got)
		}
		sayAll(<-kept) // after the result: dropped
	}
}

func TestNotesOverStreams(t *testing.T) {
	for name, c := range noteCases {
		p, kept := talking(sayAll)
		s := newServer(t, p)
		serverIn, client := io.Pipe()
		fromServer, serverOut := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- s.ServeStdio(t.Context(), serverIn, serverOut); serverOut.Close() }()
		replies := make(chan reply, 16)
		go readReplies(t, fromServer, replies)
		send := func(lines string) {
			if _, err := io.WriteString(client, lines); err != nil {
				t.Error(err)
			}
		}
		if c.version == legacy {
			send(initLine)
		}
		if c.level != "" {
			send(request(legacy, 8, "logging/setLevel", `{"level":"`+c.level+`"}`) + "\n")
			for r := range replies { // the SDK answers requests side by side
				if string(r.ID) == "8" {
					break
				}
			}
		}
		send(request(c.version, 9, "tools/call", `{"name":"talk","_meta":`+c.meta+`}`) + "\n")
		n := <-kept
		client.Close()
		var rs []reply
		for r := range replies {
			if r.Method != "" || string(r.ID) == "9" {
				rs = append(rs, r)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sayAll(n)
		if got := strings.Join(shown(rs), "\n"); got != c.stream {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// readReplies hands on what a server writes until it ends.
func readReplies(t *testing.T, in io.Reader, out chan<- reply) {
	defer close(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
		out <- r
	}
}

// With JSON instead of an event stream there is no room for notes: the answer
// comes without them.
func TestNotesAsJSON(t *testing.T) {
	p, _ := talking(sayAll)
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{JSONResponse: true})
	for _, version := range versions {
		_, rs := post(t, ts.URL, version, request(version, 1, "tools/call", `{"name":"talk","_meta":{"progressToken":"t"}}`))
		if got := strings.Join(shown(rs), "\n"); got != "result" {
			t.Errorf("%s:\n%s", version, got)
		}
	}
}

// A client that does not read never holds up the guest, and over HTTP it loses
// its place in time.
func TestNotesToClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	p, kept := talking(func(n runtime.Notify) {
		for i := range 200 {
			n.Progress(runtime.Progress{Progress: float64(i + 1), Message: long})
		}
	})
	await := func(what string) {
		t.Helper()
		select {
		case <-kept:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: guest is held up", what)
		}
	}
	s := newServer(t, p)

	serverIn, client := io.Pipe()
	silent, serverOut := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
	go func() {
		_, _ = io.WriteString(client, request(modern, 1, "tools/call", `{"name":"talk","_meta":{"progressToken":"t"}}`)+"\n")
	}()
	await("stream")
	silent.Close()
	client.Close()
	<-done

	for _, version := range versions {
		ts := serveBounded(t, s, mcpserver.HTTPOptions{MaxRequests: 1}, time.Second)
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r := newPost(t, ts.URL, version, request(version, 1, "tools/call", `{"name":"talk","_meta":{"progressToken":"t"}}`))
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		await(version)
		free := func() bool {
			res, _, err := fetch(newPost(t, ts.URL, version, request(version, 2, "tools/list", "")))
			return err == nil && res.StatusCode == http.StatusOK
		}
		for deadline := time.Now().Add(20 * time.Second); !free(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the call of a client that does not read does not end", version)
			}
		}
	}
}

// Many calls that talk at once share nothing: run with -race.
func TestNotesOfManyCalls(t *testing.T) {
	p, _ := talking(func(n runtime.Notify) {
		for i := range 20 {
			n.Progress(runtime.Progress{Progress: float64(i + 1)})
		}
	})
	ts := serveHTTP(t, newServer(t, p), mcpserver.HTTPOptions{})
	results := make(chan string, 32)
	for i := range cap(results) {
		r := newPost(t, ts.URL, versions[i%2], request(versions[i%2], i, "tools/call", fmt.Sprintf(`{"name":"talk","_meta":{"progressToken":%d}}`, i)))
		go func() {
			_, rs, err := fetch(r)
			if err != nil {
				results <- err.Error()
				return
			}
			last := 0.0
			for _, m := range rs {
				var p struct {
					ProgressToken int
					Progress      float64
				}
				if m.Method == "notifications/progress" && (json.Unmarshal(m.Params, &p) != nil || p.ProgressToken != i || p.Progress <= last) {
					results <- fmt.Sprintf("call %d: %s", i, m.Params)
					return
				}
				last = p.Progress
			}
			if len(rs) != 21 {
				results <- fmt.Sprintf("call %d: %d messages", i, len(rs))
				return
			}
			results <- ""
		}()
	}
	for range cap(results) {
		if s := <-results; s != "" {
			t.Error(s)
		}
	}
}
