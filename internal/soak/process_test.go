package soak

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/clients"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// process is a daemon of its own, as an operator starts it.
type process struct {
	*clients.Daemon

	t    *testing.T
	root string // of the sources
	dir  string
}

const slowManifest = `name: slow
version: 1.0.0
module: slow.wasm
abi: command
tools:
  - name: slow_look
    description: Waits.
    inputSchema: {type: object}
    annotations: {readOnlyHint: true, openWorldHint: false}
limits: {timeout: 30s}
`

// start builds the program and starts it.
func start(t *testing.T) *process {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, root: root, dir: t.TempDir()}
	program, err := clients.Build(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.dir, "slow"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("slow/tool.yaml", slowManifest)
	p.write("slow/slow.wasm", string(w.Program(w.Work(3e9), w.Say(1))))
	if err := guests.Seed("liars", "data", filepath.Join(p.dir, "data")); err != nil {
		t.Fatal(err)
	}
	p.configure(0)
	p.Daemon = program.Serve(t, "--config", filepath.Join(p.dir, "sandboxd.yaml"))
	return p
}

func (p *process) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		p.t.Fatal(err)
	}
}

// configure writes the configuration; odd rounds serve a package more.
func (p *process) configure(round int) {
	text := fmt.Sprintf("packages: [{source: %s/guests/notes}, {source: %[1]s/guests/liars, volumes: {data: {folder: ./data}}}, {source: ./slow}", p.root)
	if round%2 == 1 {
		text += fmt.Sprintf(", {source: %s/guests/weather}", p.root)
	}
	p.write("sandboxd.yaml", text+fmt.Sprintf("]\nlimits: {package: {waiting: 256}}\n# round %d\n", round))
}

// reloadUntil changes the configuration until the time is up, and returns how
// often.
func (p *process) reloadUntil(until time.Time) (rounds int) {
	for time.Now().Before(until) {
		rounds++
		p.configure(rounds)
		time.Sleep(time.Second)
	}
	p.configure(0)
	return rounds
}

// get returns the body of a path, empty unless the status is 200.
func (p *process) get(path string) string {
	res, err := http.Get(strings.TrimSuffix(p.URL, "/mcp") + path)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(res.Body)
	if res.StatusCode != http.StatusOK {
		return ""
	}
	return b.String()
}

// footprint is what the process holds. LiveMiB is what the last garbage
// collection left, which the next one's goal says.
type footprint struct{ Goroutines, Descriptors, LiveMiB float64 }

func (p *process) metric(body, name string) float64 {
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		p.t.Fatalf("no metric %s", name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *process) size() footprint {
	body := p.get("/metrics")
	return footprint{
		p.metric(body, "go_goroutines"), p.metric(body, "process_open_fds"),
		p.metric(body, "go_memstats_next_gc_bytes") / (1 + p.metric(body, "go_gc_gogc_percent")/100) / (1 << 20),
	}
}

// settled goes on as one client until the process is as large as it was with
// one, with some allowance, and says what it holds: what is garbage is collected
// only while something happens.
func (p *process) settled(before footprint, a *tally) (f footprint) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		p.client(p.t, a, time.Now().Add(time.Second), 0)
		f = p.size()
		if f.Goroutines <= before.Goroutines+8 && f.LiveMiB < before.LiveMiB+64 && f.Descriptors <= before.Descriptors+8 && p.metric(p.get("/metrics"), "sandboxd_calls_in_flight") == 0 {
			return f
		}
		if time.Now().After(deadline) {
			p.t.Errorf("before: %+v, a minute after the last clients: %+v", before, f)
			return f
		}
	}
}

var callsTotal = regexp.MustCompile(`(?m)^sandboxd_calls_total\{outcome="(\w+)",tool="(\w+)"\} (\S+)`)

// counts returns how many calls the metrics counted, by tool and outcome.
func (p *process) counts() map[string]float64 {
	out := map[string]float64{}
	for _, m := range callsTotal.FindAllStringSubmatch(p.get("/metrics"), -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			p.t.Fatal(err)
		}
		out[m[2]+"/"+m[1]] = n
	}
	return out
}

func (p *process) records(t *testing.T) []audit.Record {
	t.Helper()
	var out []audit.Record
	s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: p.State})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	skipped, err := audit.Read(t.Context(), s, audit.Filter{}, func(r audit.Record) error {
		out = append(out, r)
		return nil
	})
	if err != nil || skipped > 0 {
		t.Errorf("log: %d records skipped, %v", skipped, err)
	}
	v, err := audit.Verify(t.Context(), s, audit.VerifyOptions{})
	if err != nil || len(v.Faults) > 0 || v.Records != len(out) {
		t.Errorf("log: %d of %d records verified, %v, %v", v.Records, len(out), v.Faults, err)
	}
	return out
}
