package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/trust"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

const (
	taken   = `sandboxd_config_reloads_total{result="ok"} `
	refused = `sandboxd_config_reloads_total{result="error"} `
)

// A changed configuration is taken whole, and clients that listen are told; a
// wrong one changes nothing.
func TestReload(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("b"), "b", w.Say(1))
	writePackage(t, r.path("other"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	told := make(chan struct{}, 8)
	s := r.session(&mcp.StreamableClientTransport{Endpoint: r.url + "/mcp"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
	})
	r.configure("packages: [{source: ./a}, {source: ./b}]\n")
	<-told
	r.metric(taken + "1")
	if got := r.tools(s); got != "a_look a_save b_look b_save" {
		t.Errorf("tools %s", got)
	}
	for i, wrong := range []string{
		"packages: [{source: ./b}, {source: ./missing}]\n",                      // no such folder
		"packages: [{source: ./b}, {sorce: ./a}]\n",                             // a misspelt field
		"packages: [{source: ./b}, {source: ./a, volumes: {x: {folder: .}}}]\n", // no such volume
		"packages: [{source: ./a}, {source: ./other}]\n",                        // two packages of one name
	} {
		r.configure(wrong)
		r.metric(refused + string(rune('1'+i)))
		if got := r.tools(s); got != "a_look a_save b_look b_save" {
			t.Errorf("%s: tools %s", wrong, got)
		}
	}
	r.configure("packages: [{source: ./b}]\n")
	<-told
	r.metric(taken + "2")
	if got := r.tools(s); got != "b_look b_save" {
		t.Errorf("tools %s", got)
	}
	if _, failed := r.call(s, "a_save"); !failed {
		t.Error("a tool that is gone is called")
	}
}

// SIGHUP, which the caller turns into a value, reloads too.
func TestReloadWhenTold(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	r.reload <- struct{}{}
	r.metric(taken + "1")
}

// A package that changed is served on as it was until somebody approves what it
// is now.
func TestChangedPackage(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	s := r.connect("")
	writePackage(t, r.path("a"), "a", w.Exit(3))
	r.eventually("the change is seen", func() bool { return strings.Contains(r.log.String(), "package is served on as it was") })
	if text, failed := r.call(s, "a_look"); failed {
		t.Errorf("the approved version: %s", text)
	}
	src, err := tool.Load(r.path("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Open(r.state).Approve(trust.Candidate{Name: "a", Source: r.path("a"), Package: src, Definitions: src.Manifest.Tools}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the approved change is served", func() bool { _, failed := r.call(s, "a_look"); return failed })
}

// While developing, changes are taken as they come.
func TestTrustChanges(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	o := r.options()
	o.TrustChanges = true
	r.start(o)
	s := r.connect("")
	writePackage(t, r.path("a"), "a", w.Exit(3))
	r.eventually("the change is served", func() bool { _, failed := r.call(s, "a_look"); return failed })
}

// A call that runs in a package that is replaced comes to its end.
func TestReloadLetsCallsEnd(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Sleep(1e9), w.Create(), w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	s := r.connect("")
	answered := make(chan string, 1)
	go func() {
		text, _ := r.call(s, "a_save")
		answered <- text
	}()
	r.metric("sandboxd_calls_in_flight 1")
	writePackage(t, r.path("b"), "b", w.Say(1))
	r.configure("packages: [{source: ./b}]\n")
	r.metric(taken + "1")
	if text := <-answered; text != w.Said {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(r.path("state/volumes/local/a/data/" + w.Created)); err != nil {
		t.Errorf("what the call made: %v", err)
	}
}

// A daemon that others reach keeps asking for tokens, whatever address the new
// configuration names: it listens on the old one until its next start.
func TestReloadKeepsGuard(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	guarded := fmt.Sprintf("packages: [{source: ./a}]\nprincipals: [{name: alice, token: \"sha256:%064x\"}]\n", 1)
	r.configure(guarded)
	o := r.options()
	o.Config = func() (*config.Config, error) {
		c, err := config.Load(r.path("sandboxd.yaml"))
		if err == nil && len(c.Principals) > 0 {
			c.Listen.HTTP = "0.0.0.0:0"
		}
		return c, err
	}
	r.start(o)
	r.configure("packages: [{source: ./a}]\n")
	r.eventually("the refusal", func() bool { return strings.Contains(r.log.String(), "configuration is not taken") })
	if status, _ := r.get("/metrics"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
}
