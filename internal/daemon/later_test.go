package daemon_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/daemon"
	"github.com/sandboxd/sandboxd/internal/trust"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// writeReactor lays out a package that says itself that it has one tool, NAME_tell.
func writeReactor(t *testing.T, dir, name string, parts ...[]byte) {
	t.Helper()
	writePackage(t, dir, name)
	write(t, filepath.Join(dir, "tool.yaml"), "name: "+name+"\nversion: 1.0.0\nmodule: demo.wasm\nabi: reactor\nlimits: {timeout: 60s}\n")
	write(t, filepath.Join(dir, "demo.wasm"), string(w.Reactor(`{"tools":[{"name":"`+name+`_tell","inputSchema":{"type":"object"}}]}`, parts...)))
}

// approve records a package as one that has these tools, whatever it has.
func (r *rig) approve(name string, tools ...string) {
	r.t.Helper()
	src, err := source(r.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	c := trust.Candidate{Name: name, Source: r.path(name), Package: src}
	for _, name := range tools {
		c.Definitions = append(c.Definitions, tool.Definition{Name: name, InputSchema: []byte(`{"type":"object"}`)})
	}
	if _, err := trust.Open(r.state).Approve(c); err != nil {
		r.t.Fatal(err)
	}
}

// held has some packages wait when they are compiled, until pass is closed; seen
// gets the names of all.
func held(names ...string) (o runtime.Observer, seen chan string, pass chan struct{}) {
	seen, pass = make(chan string, 1024), make(chan struct{})
	return runtime.Observer{Compile: func(pkg string, _ int) func() {
		seen <- pkg
		if slices.Contains(names, pkg) {
			<-pass
		}
		return nil
	}}, seen, pass
}

// What is trusted is listed, and the daemon is ready, before any of it is compiled.
// Calls wait for their package, and it is compiled once.
func TestListedBeforeLoaded(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writeReactor(t, r.path("b"), "b")
	r.configure("packages: [{source: ./a}, {source: ./b}]\n")
	r.start(r.options())
	const both = "a_look a_save b_tell"
	if got := r.tools(r.connect("")); got != both {
		t.Fatalf("tools %s", got)
	}
	r.metric(`sandboxd_package_loads_total{result="ok"} 2`)
	r.end()
	o := r.options()
	var seen chan string
	var pass chan struct{}
	o.Observer, seen, pass = held("a", "b")
	r.start(o)
	s := r.connect("")
	if got := r.tools(s); got != both {
		t.Errorf("tools %s", got)
	}
	r.metric(`sandboxd_package_loads_total{result="ok"} 0`)
	answers := make(chan string, 2)
	for range cap(answers) {
		go func() { text, _ := r.call(s, "b_tell"); answers <- text }()
	}
	r.metric("sandboxd_calls_in_flight 2")
	close(pass)
	for range cap(answers) {
		if text := <-answers; text != w.Said {
			t.Errorf("%q", text)
		}
	}
	r.metric(`sandboxd_package_loads_total{result="ok"} 2`)
	if len(seen) != 2 {
		t.Errorf("%d compilations", len(seen))
	}
	r.metric("sandboxd_packages_not_served 0")
}

// A package that is listed and does not load is taken off the lists, of those who
// attached too, and is counted; it comes back once it loads, and not before.
func TestListedAndBroken(t *testing.T) {
	for name, c := range map[string]struct {
		parts [][]byte
		tools []string
	}{
		"other tools": {nil, []string{"b_tell", "b_more"}},
		"it traps":    {[][]byte{w.Unreachable}, []string{"b_tell"}},
		"it writes":   {[][]byte{w.Create()}, []string{"b_tell"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			writePackage(t, r.path("a"), "a", w.Say(1))
			writeReactor(t, r.path("b"), "b", c.parts...)
			if name == "it writes" {
				manifest := "name: b\nversion: 1.0.0\nmodule: demo.wasm\nabi: reactor\nrequests: {volumes: [{name: data, path: /data}]}\n"
				write(t, r.path("b/tool.yaml"), manifest)
			}
			r.approve("b", c.tools...)
			r.configure("packages: [{source: ./a}, {source: ./b}]\n")
			o := r.options()
			o.Retry = 20 * time.Millisecond
			var pass chan struct{}
			o.Observer, _, pass = held("b")
			r.start(o)
			told := make(chan struct{}, 8)
			s := r.session(&mcp.StreamableClientTransport{Endpoint: r.url + "/mcp"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
			})
			conf, err := config.Load(r.path("sandboxd.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			attached, end := r.attach(greeting(conf.Packages[1]))
			if got := r.tools(s); !strings.Contains(got, "b_tell") || r.tools(attached) != got[len("a_look a_save "):] {
				t.Fatalf("tools %s, of who attached %s", got, r.tools(attached))
			}
			answered := make(chan string, 1)
			go func() { text, _ := r.call(s, "b_tell"); answered <- text }()
			r.metric("sandboxd_calls_in_flight 1")
			close(pass)
			if text := <-answered; !strings.Contains(text, "does not load any more") {
				t.Errorf("%q", text)
			}
			<-told
			r.metric("sandboxd_packages_not_served 1")
			if got := r.tools(s) + ", " + r.tools(attached); got != "a_look a_save, " {
				t.Errorf("tools %s", got)
			}
			if text, failed := r.call(s, "b_tell"); !failed || !strings.Contains(text, "unknown tool") {
				t.Errorf("%q", text)
			}
			if _, ok := errors.AsType[*daemon.RefusedError](r.refused(greeting(conf.Packages[1]))); !ok {
				t.Error("who brings it once more has it listed")
			}
			if status, _ := r.get("/readyz"); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			r.eventually("it is tried again", func() bool { return strings.Count(r.log.String(), `msg="package is not served"`) > 1 })
			if got := r.tools(s); got != "a_look a_save" {
				t.Errorf("tried again, tools %s", got)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
			writeReactor(t, r.path("b"), "b", w.Say(2))
			r.approve("b", "b_tell")
			<-told
			if text, failed := r.call(s, "b_tell"); failed {
				t.Error(text)
			}
			r.metric("sandboxd_packages_not_served 0")
		})
	}
}

// What the operator changes meanwhile is taken, as a whole: it does not wait for
// packages that are still loaded since the start, and one that goes is not loaded
// to its end.
func TestReloadWhileItLoads(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writePackage(t, r.path("c"), "c", w.Say(1))
	writeReactor(t, r.path("b"), "b", w.Forever) // for a minute
	r.approve("b", "b_tell")
	r.configure("packages: [{source: ./b}, {source: ./a}]\n")
	r.start(r.options())
	s := r.connect("")
	if got := r.tools(s); got != "a_look a_save b_tell" {
		t.Errorf("tools %s", got)
	}
	answered := make(chan string, 1)
	go func() { text, _ := r.call(s, "b_tell"); answered <- text }()
	r.metric("sandboxd_calls_in_flight 1")
	if text, failed := r.call(s, "a_look"); failed {
		t.Errorf("another package waits for it: %s", text)
	}
	r.configure("packages: [{source: ./b}, {source: ./a}, {source: ./c}]\n")
	r.metric(taken + "1")
	if got := r.tools(s); got != "a_look a_save b_tell c_look c_save" {
		t.Errorf("tools %s", got)
	}
	r.configure("packages: [{source: ./a}, {source: ./missing}]\n")
	r.metric(refused + "1")
	r.configure("packages: [{source: ./a}]\n")
	r.metric(taken + "2")
	if text := <-answered; !strings.Contains(text, "not called") {
		t.Errorf("%q", text)
	}
	r.metric("sandboxd_packages_not_served 0")
	if strings.Contains(r.log.String(), "does not load") {
		t.Errorf("its end is told: %s", r.log)
	}
}

// A daemon that is told to stop does not wait for what it still loads.
func TestStopWhileItLoads(t *testing.T) {
	r := newRig(t)
	writeReactor(t, r.path("a"), "a", w.Forever)
	writeReactor(t, r.path("b"), "b", w.Forever)
	r.approve("a", "a_tell")
	r.approve("b", "b_tell")
	r.configure("packages: [{source: ./a}, {source: ./b}]\n")
	r.start(r.options())
	s := r.connect("")
	answered := make(chan string, 1)
	go func() { text, _ := r.call(s, "b_tell"); answered <- text }()
	r.metric("sandboxd_calls_in_flight 1")
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if text := <-answered; !strings.Contains(text, "not called") {
		t.Errorf("%q", text)
	}
}

// What a reload brings is loaded in full, on record or not: all of it is taken, or
// nothing.
func TestReloadLoadsInFull(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writeReactor(t, r.path("b"), "b")
	r.approve("b", "b_tell", "b_more")
	r.configure("packages: [{source: ./a}]\n")
	r.start(r.options())
	r.configure("packages: [{source: ./b}]\n")
	r.metric(refused + "1")
	if got := r.tools(r.connect("")); got != "a_look a_save" {
		t.Errorf("tools %s", got)
	}
}

// What a process brings that attaches is listed first, too, and loaded without its
// asking.
func TestAttachedBeforeLoaded(t *testing.T) {
	r := newRig(t)
	writePackage(t, r.path("a"), "a", w.Say(1))
	writeReactor(t, r.path("b"), "b")
	r.approve("b", "b_tell")
	r.configure("packages: [{source: ./a}]\n")
	o := r.options()
	var seen chan string
	o.Observer, seen, _ = held()
	r.start(o)
	if name := <-seen; name != "a" {
		t.Errorf("%s is compiled", name)
	}
	c, err := config.Load(r.path("sandboxd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, end := r.attach(greeting(config.Package{Source: r.path("b"), Limits: c.Limits.Package}))
	if got := r.tools(s); got != "b_tell" {
		t.Errorf("tools %s", got)
	}
	if name := <-seen; name != "b" {
		t.Errorf("%s is compiled", name)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
