package soak

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/audit"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// process is a daemon of its own, as an operator starts it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	dir   string
	url   string
	ended chan error
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

// start builds the program, starts it and waits until it is ready.
func start(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, dir: t.TempDir(), ended: make(chan error, 1)}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(p.dir, "sandboxd")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, root+"/cmd/sandboxd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	slow := filepath.Join(p.dir, "slow")
	os.Mkdir(slow, 0o700)
	p.write("slow/tool.yaml", slowManifest)
	p.write("slow/slow.wasm", string(w.Program(w.Sleep(3e9), w.Say(1))))
	p.configure(root, 0)
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, "serve", "--config", filepath.Join(p.dir, "sandboxd.yaml"), "--state", filepath.Join(p.dir, "state"), "--http", "127.0.0.1:0")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		r := bufio.NewReader(io.TeeReader(stderr, log))
		for {
			line, err := r.ReadString('\n')
			if _, rest, ok := strings.Cut(line, "MCP at "); ok {
				url, _, _ := strings.Cut(rest, "/mcp")
				listening <- url
			}
			if err != nil {
				p.ended <- p.cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("%s", b[max(0, len(b)-4000):])
		}
	})
	select {
	case p.url = <-listening:
	case err := <-p.ended:
		t.Fatalf("ended: %v", err)
	}
	for deadline := time.Now().Add(5 * time.Minute); p.get("/readyz") == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not ready")
		}
	}
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
func (p *process) configure(root string, round int) {
	text := fmt.Sprintf("packages: [{source: %s/guests/notes}, {source: %[1]s/guests/liars, volumes: {data: {folder: ./data}}}, {source: ./slow}", root)
	if err := os.MkdirAll(filepath.Join(p.dir, "data"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if round%2 == 1 {
		text += fmt.Sprintf(", {source: %s/guests/weather}", root)
	}
	p.write("sandboxd.yaml", text+fmt.Sprintf("]\nlimits: {package: {waiting: 256}}\n# round %d\n", round))
}

// reloadUntil changes the configuration until the time is up, and returns how
// often.
func (p *process) reloadUntil(until time.Time) (rounds int) {
	root, _ := filepath.Abs("../..")
	for time.Now().Before(until) {
		rounds++
		p.configure(root, rounds)
		time.Sleep(time.Second)
	}
	p.configure(root, 0)
	return rounds
}

// get returns the body of a path, empty unless the status is 200.
func (p *process) get(path string) string {
	res, err := http.Get(p.url + path)
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

// footprint is what the process holds.
type footprint struct{ Goroutines, Descriptors, HeapMiB float64 }

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
		p.metric(body, "go_memstats_heap_inuse_bytes") / (1 << 20),
	}
}

// settled waits until the process is as large as it was before, with some
// allowance, and says what it holds.
func (p *process) settled(before footprint) (f footprint) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		f = p.size()
		if f.Goroutines <= before.Goroutines+8 && f.Descriptors <= before.Descriptors+8 && p.metric(p.get("/metrics"), "sandboxd_calls_in_flight") == 0 {
			return f
		}
		if time.Now().After(deadline) {
			p.t.Errorf("before: %+v, a minute after the last call: %+v", before, f)
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

// stop ends the process as a service manager does.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return <-p.ended
}

func (p *process) records(t *testing.T) []audit.Record {
	t.Helper()
	var out []audit.Record
	skipped, err := audit.Read(filepath.Join(p.dir, "state"), audit.Filter{}, func(r audit.Record) error {
		out = append(out, r)
		return nil
	})
	if err != nil || skipped > 0 {
		t.Errorf("log: %d torn records, %v", skipped, err)
	}
	return out
}
