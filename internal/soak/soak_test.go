package soak

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

var duration = flag.Duration("soak", 10*time.Second, "how long the clients call")

const callers = 16

// tally is what a client saw.
type tally struct {
	ok        map[string]string // tool by call id
	lies      map[string]string
	cancelled int
	faults    []string
	read      []time.Duration // of calls that only read
}

func newTally() *tally {
	return &tally{ok: map[string]string{}, lies: map[string]string{}}
}

func (a *tally) add(b *tally) {
	for id, tool := range b.ok {
		a.ok[id] = tool
	}
	for id, tool := range b.lies {
		a.lies[id] = tool
	}
	a.cancelled += b.cancelled
	a.faults = append(a.faults, b.faults...)
	a.read = append(a.read, b.read...)
}

// Sixteen clients call honest and lying tools, give up on slow ones, and the
// configuration is taken anew all the while. Afterwards the log has each call
// that a client was answered, each lie was stopped, the counts of the metrics are
// those of the log, and the process is as large as before.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program for a while")
	}
	p := start(t)
	// As many as later: the store opens its files when it needs them.
	total, _ := p.clients(t, time.Now().Add(3*time.Second), false)
	before := p.size()
	until := time.Now().Add(*duration)
	more, reloads := p.clients(t, until, true)
	total.add(more)
	after := p.settled(before, total)
	for _, f := range total.faults {
		t.Error(f)
	}
	counted := p.counts()
	p.Stop()
	compare(t, total, p.records(t), counted)
	slices.Sort(total.read)
	n := len(total.read)
	t.Logf("%v: %d calls ok, %d lies stopped, %d given up, %d reloads; reading calls p50 %v, p99 %v",
		*duration, len(total.ok), len(total.lies), total.cancelled, reloads, total.read[n/2], total.read[n*99/100])
	t.Logf("before %v, after %v", before, after)
}

// clients lets all of them call until then, and the configuration be taken anew as
// often as it goes meanwhile where reload is set.
func (p *process) clients(t *testing.T, until time.Time, reload bool) (total *tally, reloads int) {
	total = newTally()
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range callers {
		work.Go(func() {
			mine := newTally()
			p.client(t, mine, until, i)
			mu.Lock()
			defer mu.Unlock()
			total.add(mine)
		})
	}
	if reload {
		reloads = p.reloadUntil(until)
	}
	work.Wait()
	return total, reloads
}

// client calls until the time is up, on a connection that it makes anew now and
// then.
func (p *process) client(t *testing.T, a *tally, until time.Time, seed int) {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	for time.Now().Before(until) {
		transport := &http.Transport{}
		s, err := mcp.NewClient(&mcp.Implementation{Name: "soak", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: p.URL, HTTPClient: &http.Client{Transport: transport},
		}, nil)
		if err != nil {
			a.faults = append(a.faults, "connect: "+err.Error())
			return
		}
		for range 50 {
			if time.Now().After(until) {
				break
			}
			p.call(t, s, a, rng)
		}
		s.Close()
		transport.CloseIdleConnections()
	}
}

// call makes one call of a random kind and notes what came of it.
func (p *process) call(t *testing.T, s *mcp.ClientSession, a *tally, rng *rand.Rand) {
	name, lies := "list_notes", false
	var arguments any
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch n := rng.IntN(10); {
	case n < 5:
	case n < 6:
		name, arguments = "exchange_rate", map[string]any{"currency": "EUR"}
	case n < 9:
		name, arguments, lies = "check_ticket", map[string]any{"number": 1 + rng.IntN(100)}, true
	default:
		name = "slow_look"
		time.AfterFunc(time.Duration(20+rng.IntN(50))*time.Millisecond, cancel)
	}
	began := time.Now()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	took := time.Since(began)
	switch {
	case ctx.Err() != nil:
		a.cancelled++
	case err != nil:
		a.faults = append(a.faults, fmt.Sprintf("%s: %v", name, err))
	case lies && res.IsError && violated(res):
		a.lies[callID(res)] = name
	case lies:
		a.faults = append(a.faults, fmt.Sprintf("%s: a lie was answered with %s", name, text(res)))
	case res.IsError:
		a.faults = append(a.faults, fmt.Sprintf("%s: an honest call was answered with %s", name, text(res)))
	default:
		a.ok[callID(res)] = name
		if name == "list_notes" {
			a.read = append(a.read, took)
		}
	}
}

func violated(res *mcp.CallToolResult) bool {
	_, ok := res.Meta[runtime.MetaPrefix+"violation"]
	return ok
}

func text(res *mcp.CallToolResult) string {
	b, err := json.Marshal(res)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func callID(res *mcp.CallToolResult) string {
	call, _ := res.Meta[runtime.MetaPrefix+"call"].(map[string]any)
	id, _ := call["id"].(string)
	return id
}

// compare holds log and metrics against what the clients saw.
func compare(t *testing.T, seen *tally, records []audit.Record, counted map[string]float64) {
	t.Helper()
	calls, violations := map[string]runtime.Outcome{}, map[string]int{}
	logged := map[string]float64{}
	for _, r := range records {
		switch r.Type {
		case audit.TypeCall:
			if _, twice := calls[r.CallID]; twice {
				t.Errorf("call %s: two records", r.CallID)
			}
			calls[r.CallID] = r.Outcome
			logged[r.Tool+"/"+string(r.Outcome)]++
		case audit.TypeViolation:
			violations[r.CallID]++
		}
	}
	for id, tool := range seen.ok {
		if calls[id] != runtime.OK || violations[id] > 0 {
			t.Errorf("call %s of %s went well for the client, in the log: %q", id, tool, calls[id])
		}
	}
	for id, tool := range seen.lies {
		if calls[id] != runtime.Violation || violations[id] == 0 {
			t.Errorf("lie %s of %s: in the log %q, %d violations", id, tool, calls[id], violations[id])
		}
	}
	for key, n := range logged {
		if counted[key] != n {
			t.Errorf("%s: %v in the metrics, %v in the log", key, counted[key], n)
		}
	}
	if len(seen.ok) == 0 || len(seen.lies) == 0 || seen.cancelled == 0 {
		t.Errorf("nothing was tried: %d ok, %d lies, %d given up", len(seen.ok), len(seen.lies), seen.cancelled)
	}
}
