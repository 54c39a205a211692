package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/guests"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// marked returns a module that no cache has for another: with a custom section.
func marked(module []byte, mark string) []byte {
	body := append(append(w.Uint(uint64(len("mark"))), "mark"...), mark...)
	return slices.Concat(module, []byte{0}, w.Uint(uint64(len(body))), body)
}

// twenty lays out a configuration of twenty packages of one module, each with a
// mark, and returns its file.
func twenty(t testing.TB, module []byte) string {
	t.Helper()
	dir := t.TempDir()
	conf := "packages:\n"
	for i := range 20 {
		name := fmt.Sprintf("p%d", i)
		pkg := filepath.Join(dir, name)
		if err := os.Mkdir(pkg, 0o700); err != nil {
			t.Fatal(err)
		}
		conf += fmt.Sprintf("  - {source: %s, as: %s}\n", pkg, name)
		put(t, filepath.Join(pkg, "tool.yaml"), []byte("name: notes\nversion: 1.0.0\nmodule: m.wasm\nabi: reactor\nrequests:\n  volumes: [{name: data, path: /data}]\n"))
		put(t, filepath.Join(pkg, "m.wasm"), marked(module, name))
	}
	file := filepath.Join(dir, "sandboxd.yaml")
	put(t, file, []byte(conf))
	return file
}

func put(t testing.TB, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// goGuest builds a bundled guest.
func goGuest(s *shell, name string) []byte {
	s.t.Helper()
	source, out := s.t.TempDir(), filepath.Join(s.t.TempDir(), "out")
	if err := guests.Extract(source); err != nil {
		s.t.Fatal(err)
	}
	if code, _, diag := s.run("build", filepath.Join(source, "guests", name), "--out", out); code != 0 {
		s.t.Fatal(diag)
	}
	b, err := os.ReadFile(filepath.Join(out, "module.wasm"))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// stdio starts a process and returns its session, its tools and how long it took
// from the start to them.
func (s *shell) stdio(conf string) (client *mcp.ClientSession, tools int, took time.Duration) {
	s.t.Helper()
	cmd := s.program("--config", conf, "serve", "--stdio")
	began := time.Now()
	client, tools = s.listed(&mcp.CommandTransport{Command: cmd})
	return client, tools, time.Since(began)
}

func (s *shell) listed(transport mcp.Transport) (*mcp.ClientSession, int) {
	s.t.Helper()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(context.Background(), transport, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := client.ListTools(context.Background(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return client, len(list.Tools)
}

// http is stdio over HTTP; the daemon is stopped.
func (s *shell) http(conf string) time.Duration {
	s.t.Helper()
	began := time.Now()
	url, stop := s.serving("MCP at ", "--config", conf, "serve", "--http", "127.0.0.1:0")
	client, _ := s.listed(&mcp.StreamableClientTransport{Endpoint: url + "/mcp"})
	took := time.Since(began)
	client.Close()
	stop()
	return took
}

// What twenty trusted packages have is listed without compiling them, and the last
// of them answers a call that comes at once.
func TestStartWithTwentyPackages(t *testing.T) {
	s := newShell(t)
	module := w.Reactor(`{"tools":[{"name":"tell","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	if !testing.Short() {
		module = goGuest(s, "notes")
	}
	conf := twenty(t, module)
	first, want, _ := s.stdio(conf)
	if err := first.Close(); err != nil || want < 20 {
		t.Fatalf("%d tools, %v", want, err)
	}
	s.state = filepath.Join(t.TempDir(), "state") // trusted nothing yet, but compiled before
	first, _, eager := s.stdio(conf)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, tools, took := s.stdio(conf)
	defer again.Close()
	if tools != want {
		t.Errorf("%d tools, want %d", tools, want)
	}
	name := "p19_tell"
	if !testing.Short() {
		name = "p19_list_notes"
		if took > eager/3 {
			t.Errorf("listed after %s, and after %s where all were loaded first", took, eager)
		}
	}
	res, err := again.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
	if err != nil || res.IsError {
		t.Errorf("%+v, %v", res, err)
	}
	t.Logf("listed after %s, and after %s where all were loaded first", took, eager)
}

// BenchmarkStart takes the time from the start of a process to its first list of
// tools, with twenty Go packages that were compiled before: as trusted ones, and as
// ones that are used for the first time, which are loaded in full. Run it with
// -benchtime 7x; it reports medians.
func BenchmarkStart(b *testing.B) {
	s := newShell(b)
	conf := twenty(b, goGuest(s, "notes"))
	transports := map[string]func() time.Duration{
		"stdio": func() time.Duration {
			client, _, took := s.stdio(conf)
			client.Close()
			return took
		},
		"http": func() time.Duration { return s.http(conf) },
	}
	transports["stdio"]() // compiles all
	for _, transport := range []string{"stdio", "http"} {
		for _, kind := range []string{"trusted", "first use"} {
			b.Run(transport+"/"+kind, func(b *testing.B) {
				var all []time.Duration
				for b.Loop() {
					if kind == "first use" {
						s.state = filepath.Join(b.TempDir(), "state")
					}
					all = append(all, transports[transport]())
				}
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2])/1e6, "ms-median")
			})
		}
	}
}
