package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
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
	r.reload <- syscall.SIGHUP
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

// A change of a package's own files is a change of the package.
func TestChangedFiles(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	manifest := r.path(filepath.Join("a", "tool.yaml"))
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.path(filepath.Join("a", "script", "lib")), 0o700); err != nil {
		t.Fatal(err)
	}
	script := r.path(filepath.Join("a", "script", "lib", "x.py"))
	write(t, script, "1")
	write(t, manifest, string(text)+"files: script\n")
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	write(t, script, "2")
	r.eventually("the change is seen", func() bool { return strings.Contains(r.log.String(), "package is served on as it was") })
}

// A call that runs in a package that is replaced comes to its end.
func TestReloadLetsCallsEnd(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Work(1e9), w.Create(), w.Say(1))
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
	if err := r.made("local"); err != nil {
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
	o.Config = r.read(func(c *config.Config) {
		c.Listen.HTTP = "0.0.0.0:0"
		if len(c.Principals) == 0 {
			c.Listen.HTTP = "127.0.0.1:0"
		}
	})
	r.start(o)
	r.configure("packages: [{source: ./a}]\n")
	r.eventually("the refusal", func() bool { return strings.Contains(r.log.String(), "configuration is not taken") })
	if status, _ := r.get("/metrics"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
}

// One package's author can hold up nothing: not the start of the others, not a
// token that is withdrawn, and not by files that never settle.
func TestBrokenPackageHoldsUpNothing(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("b"), "b", w.Say(1))
	write(t, r.path("b/tool.yaml"), "broken: [")
	principals := func(n int) string {
		return fmt.Sprintf("packages: [{source: ./a}, {source: ./b}]\nprincipals: [{name: alice, token: \"sha256:%064x\"}]\n", n)
	}
	token, hash, err := config.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	r.configure(strings.Replace(principals(1), fmt.Sprintf("%064x", 1), fmt.Sprintf("%x", hash), 1))
	r.start(r.options())
	if got := r.tools(r.connect(token)); got != "a_look a_save" {
		t.Errorf("tools %s", got)
	}
	storm, calm := context.WithCancel(t.Context())
	defer calm()
	var work sync.WaitGroup
	defer work.Wait()
	defer calm()
	work.Go(func() {
		for n := 0; storm.Err() == nil; n++ {
			os.WriteFile(r.path("b/x.yaml"), []byte("x"), 0o600)
			time.Sleep(settled / 4)
		}
	})
	r.configure(principals(2))
	r.eventually("the token is withdrawn", func() bool {
		status, _ := r.get("/metrics", "Authorization", "Bearer "+token)
		return status == http.StatusUnauthorized
	})
}

// settled is longer than the daemon waits for files to settle.
const settled = 200 * time.Millisecond

// A browser on this machine reaches nothing under a name of somebody else.
func TestRebinding(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/mcp", "/"} {
		for host, ok := range map[string]bool{"evil.example": false, "evil.example:80": false, "localhost": true, "127.0.0.1:1": true, "[::1]:1": true} {
			if status, _ := r.get(path, "Host", host); (status != http.StatusForbidden) != ok {
				t.Errorf("%s of %s: status %d", path, host, status)
			}
		}
	}
}

// Whatever an author writes into the manifest of a package that is served, what
// the operator changes is taken, and the others are served after a restart.
func TestAuthorHoldsUpNothing(t *testing.T) {
	for name, edit := range map[string]func(manifest string) string{
		"another's name": func(m string) string { return strings.Replace(m, "name: b\n", "name: a\n", 1) },
		"no such volume": func(m string) string { return strings.Replace(m, "name: data", "name: other", 1) },
		"not a manifest": func(string) string { return "broken: [" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			writePackage(t, r.path("b"), "b", w.Say(1))
			writePackage(t, r.path("a"), "a", w.Say(1))
			token, hash, err := config.NewToken()
			if err != nil {
				t.Fatal(err)
			}
			packages := "packages: [{source: ./b, volumes: {data: {managed: shared}}}, {source: ./a}]\n"
			r.configure(packages + fmt.Sprintf("principals: [{name: alice, token: \"sha256:%x\"}]\n", hash))
			r.start(r.options())
			write(t, r.path("b/tool.yaml"), edit(fmt.Sprintf(manifest, "b")))
			r.configure(packages + fmt.Sprintf("principals: [{name: alice, token: \"sha256:%064x\"}]\n", 1))
			r.eventually("the token is withdrawn", func() bool {
				status, _ := r.get("/metrics", "Authorization", "Bearer "+token)
				return status == http.StatusUnauthorized
			})
			if err := r.end(); err != nil {
				t.Error(err)
			}
			r.configure(packages)
			r.start(r.options())
			if got := r.tools(r.connect("")); got != "a_look a_save" {
				t.Errorf("after a restart: %s", got)
			}
		})
	}
}

// Who may call no more does not wait until packages are read and loaded.
func TestTokenIsWithdrawnAtOnce(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	token, hash, err := config.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	r.configure(fmt.Sprintf("packages: [{source: ./a}]\nprincipals: [{name: alice, token: \"sha256:%x\"}]\n", hash))
	o := r.options()
	reading, release := make(chan struct{}, 8), make(chan struct{})
	var reads atomic.Int32
	o.Sources = func(c *config.Config) ([]daemon.Source, error) {
		if reads.Add(1) > 1 { // the start is let through
			reading <- struct{}{}
			<-release
		}
		return sources(c)
	}
	r.start(o)
	defer close(release)
	<-reading
	r.configure(fmt.Sprintf("packages: [{source: ./a}]\nprincipals: [{name: alice, token: \"sha256:%064x\"}]\n", 1))
	r.eventually("the token is withdrawn", func() bool {
		status, _ := r.get("/metrics", "Authorization", "Bearer "+token)
		return status == http.StatusUnauthorized
	})
}

// A package that lacks something is counted, and served once it is there.
func TestAbsentPackageIsTriedAgain(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("b"), "b", w.Say(1))
	r.configure("packages: [{source: ./a}, {source: ./b, volumes: {data: {folder: ./later}}}]\n")
	o := r.options()
	o.Retry = 20 * time.Millisecond
	r.start(o)
	r.metric("sandboxd_packages_not_served 1")
	if err := os.Mkdir(r.path("later"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.metric("sandboxd_packages_not_served 0")
	if got := r.tools(r.connect("")); got != "a_look a_save b_look b_save" {
		t.Errorf("tools %s", got)
	}
}
