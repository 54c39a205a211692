package runtime

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
	"github.com/sandboxd/sandboxd/tool"
)

var packages = flag.Int("packages", 0, "load so many packages with a reactor in Go and measure what their warm instances take; 0: 8")

// private returns how much memory this process has for itself alone, in bytes
// (proc_pid_smaps(5)).
func private(t *testing.T) int64 {
	t.Helper()
	goruntime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skip(err)
	}
	var sum int64
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 3 && bytes.HasPrefix(f[0], []byte("Private_")) {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n << 10
		}
	}
	return sum
}

// TestWarmInstancesAreSmall: what instances of a reactor in Go that wait for a call take
// besides the image, and the machine code, that they share.
func TestWarmInstancesAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles a Go guest")
	}
	n, each := max(*packages, 8), 4
	const most = 300 << 10
	module, err := draws()
	if err != nil {
		t.Fatalf("%v\n%s", err, module)
	}
	e, err := New(context.Background(), Options{Store: memstore.New(), Cache: compiled(), Warm: 8 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	var loaded []*Package
	for i := range n {
		p := pack(module, tool.Reactor, readOnly)
		p.Manifest.Name, p.Manifest.Limits.Memory = fmt.Sprint("p", i), 64<<20
		p.Manifest.Tools[0].Name = "count"
		loaded = append(loaded, mustLoad(t, e, p, Binding{}))
	}
	// serve has k instances of each package serve one call, all at one time.
	serve := func(k int) {
		var put []func()
		for _, p := range loaded {
			for range k {
				c := p.forTest(t, "count")
				i, err := p.instances.Get(t.Context(), &c.startUp)
				if err != nil {
					t.Fatal(err)
				}
				if answer, err := c.invoke(t.Context(), i, []byte(`{"tool":"count","arguments":{},"context":{"callId":"x"}}`)); err != nil || !bytes.Contains(answer, []byte("1 0")) {
					t.Fatalf("%s, %v", answer, err)
				}
				put = append(put, func() { p.instances.Put(i, Reset) })
			}
		}
		for _, f := range put {
			f()
		}
	}
	serve(1) // machine code is loaded
	e.warm.trim(time.Now().Add(idleFat))
	before := private(t)
	serve(1 + each)
	used := private(t)
	e.warm.trim(time.Now().Add(idleFat))
	idle := private(t)
	per := func(bytes int64) int64 { return (bytes - before) / int64(n*each) }
	t.Logf("%d packages with %d instances: %d KiB each after a call, %d KiB each when it has waited for %v", n, 1+each, per(used)>>10, per(idle)>>10, idleFat)
	if per(idle) > most {
		t.Errorf("a warm instance takes %d KiB, at most %d are to be", per(idle)>>10, most>>10)
	}
	serve(1 + each)
}

// forTest returns a call of a tool that is not settled.
func (p *Package) forTest(t *testing.T, name string) *call {
	t.Helper()
	definition, ok := p.Tool(name)
	if !ok {
		t.Fatal(name)
	}
	ledger := capabilities.NewLedger(definition.Grant, capabilities.Notify{})
	spec := &callSpec{pkg: p, tool: definition, report: &reporter{notes: hostmcp.NewNotes(hostmcp.Receiver{})}, ledger: ledger}
	limits := p.source.Manifest.Limits
	c := spec.on(world{}, newExecution(t.Context(), world{cpus: p.engine.cpus}, ledger, limits))
	c.startUp = startUp{stderr: &c.stderr, ledger: ledger, seat: c.seat}
	return c
}
