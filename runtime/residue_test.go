package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/runtime/image"
)

var (
	residueCalls  = flag.Int("residue", 80, "how often each reactor is called in each way of making instances, in the test of what calls leave; a command a tenth, an interpreter a hundredth of that")
	residueFor    = flag.Duration("residuefor", 0, "about how long that may take in all: calls that do not fit are not made, and missing in the report; 0: as long as it takes")
	residueReport = flag.String("residuereport", "", "file to which a line of JSON is added for each guest and way")
)

// residueCallers call at once, each as another principal.
const residueCallers = 8

// residueLine is one line of the report.
type residueLine struct {
	Guest    string   `json:"guest"`
	Kind     Kind     `json:"kind"`
	Strategy Strategy `json:"strategy"`
	Method   string   `json:"method,omitempty"` // by which memory is put back
	Callers  int      `json:"callers"`
	Wanted   int      `json:"wanted"`
	Calls    int      `json:"calls"`
	Found    int      `json:"found"`
	Seconds  float64  `json:"seconds"`
}

// TestResidue: of what a call leaves in memory, globals, descriptors, scratch, files
// and keys, the calls of others find nothing, however it ended, and the host tells
// nobody.
func TestResidue(t *testing.T) {
	type way struct {
		guest    residueGuest
		strategy Strategy
		method   image.Method
		calls    int
	}
	var ways []way
	for _, g := range residueGuestsHere() {
		calls := max(*residueCalls/g.share, 2*residueCallers)
		for _, m := range image.Methods() {
			ways = append(ways, way{g, StrategyImage, m, calls})
		}
		few := max(calls/50, 2*residueCallers)
		ways = append(ways, way{g, StrategyNew, "", few}, way{g, StrategyPrestarted, "", few})
	}
	left := *residueFor
	for k, w := range ways {
		began := time.Now()
		var end time.Time
		if *residueFor > 0 {
			end = began.Add(left / time.Duration(len(ways)-k))
		}
		t.Run(fmt.Sprint(w.guest.name, "/", w.strategy, w.method), func(t *testing.T) {
			w.guest.test(t, w.strategy, w.method, w.calls, end)
		})
		left = max(left-time.Since(began), 0)
	}
}

// test makes calls by one way of making instances, until end where that is not zero.
func (g *residueGuest) test(t *testing.T, s Strategy, m image.Method, calls int, end time.Time) {
	t.Helper()
	p := g.load(t, s, m)
	kind, why := p.Kind()
	if want := map[bool]Kind{true: g.kind, false: KindNew}[s == StrategyImage]; kind != want {
		t.Errorf("%s, %s: its kind is %s (%s), want %s", s, m, kind, why, want)
	}
	began := time.Now()
	r := newResidueRun(t, p)
	r.all(calls, end)
	r.inside()
	line := residueLine{
		Guest: g.name, Kind: kind, Strategy: s, Method: string(m), Callers: residueCallers, Wanted: calls, Calls: int(r.calls), Found: int(r.found),
		Seconds: time.Since(began).Seconds(),
	}
	text, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if *residueReport == "" {
		return
	}
	f, err := os.OpenFile(*residueReport, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// residueRun are calls of some principals, each of which leaves a secret in every
// call, looks for those of all, its own earlier calls too, and keeps another one.
type residueRun struct {
	t    *testing.T
	p    *Package
	left []*secret // by principal
	kept []*secret

	mu    sync.Mutex
	calls int64
	found int64
}

func newResidueRun(t *testing.T, p *Package) *residueRun {
	r := &residueRun{t: t, p: p}
	for range residueCallers {
		r.left = append(r.left, newSecret())
		r.kept = append(r.kept, newSecret())
	}
	return r
}

func principal(who int) string { return fmt.Sprint("caller-", who) }

// others are the secrets that a call of a principal must not come across.
func (r *residueRun) others(who int) []*secret {
	return append(slices.Clone(r.left), slices.Delete(slices.Clone(r.kept), who, who+1)...)
}

// report counts what was found. The test goes on for a while.
func (r *residueRun) report(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found++; r.found <= 10 {
		r.t.Errorf(format, args...)
	}
}

// all makes the calls, but none after end where that is not zero.
func (r *residueRun) all(calls int, end time.Time) {
	var work sync.WaitGroup
	for who := range residueCallers {
		work.Go(func() {
			for k := range (calls + residueCallers - 1) / residueCallers {
				if !end.IsZero() && time.Now().After(end) {
					return
				}
				if k%500 == 0 {
					r.keep(who)
				}
				r.trade(who, k)
				if k%50 == 49 {
					r.inside()
				}
			}
		})
	}
	work.Wait()
}

func (r *residueRun) keep(who int) {
	arguments := fmt.Sprintf(`{"own":%q}`, r.kept[who].shares())
	result := r.call(context.Background(), who, "keep", arguments, []*secret{r.kept[who]})
	if result.Outcome != OK || !result.Committed {
		r.report("keep: %s, %v\n%s", result.Outcome, result.Err, result.Stderr)
	}
}

// endings are how calls end, by what the guest is told.
var endings = map[string]Outcome{"": OK, "trap": ToolError, "exit": ToolError, "error": ToolError, "spin": Timeout}

// ending is how the k-th call ends: most by an answer.
func ending(k int) string {
	switch {
	case k%500 == 8:
		return "spin"
	case k%50 == 4:
		return "trap"
	case k%50 == 7:
		return "exit"
	case k%50 == 10:
		return "error"
	}
	return ""
}

// trade looks for everybody's secrets and leaves one.
func (r *residueRun) trade(who, k int) {
	in := map[string]any{
		"seek": allShares(r.others(who)), "own": r.left[who].shares(), "end": ending(k),
		"big": k%16 == 3, "answers": r.p.source.Manifest.ABI == "command",
	}
	if k%8 == 5 && ending(k) == "" {
		delete(in, "own")
		in["grow"] = true
	}
	arguments, err := json.Marshal(in)
	if err != nil {
		r.report("%v", err)
		return
	}
	ctx := context.Background()
	if ending(k) == "spin" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
	}
	result := r.call(ctx, who, "trade", string(arguments), []*secret{r.left[who], r.kept[who]})
	// A guest that took all memory there is and then did not end well ran into that limit.
	if want := endings[ending(k)]; result.Outcome != want && !(want == ToolError && result.Outcome == Limit) {
		r.report("%s, call %d: %s, %v; want %s\n%.1000s", principal(who), k, result.Outcome, result.Err, want, result.Stderr)
		return
	}
	if result.Outcome == OK && residueText(result) != "" || ending(k) == "error" && residueText(result) != "" {
		r.report("%s, call %d: found\n%s", principal(who), k, residueText(result))
	}
}

// residueText returns what a guest says it found.
func residueText(r *Result) string {
	var block struct{ Text string }
	if len(r.Output.Content) != 1 {
		return fmt.Sprintf("%d blocks of content", len(r.Output.Content))
	}
	if err := json.Unmarshal(r.Output.Content[0], &block); err != nil {
		return err.Error()
	}
	return block.Text
}

// call makes one call and sees that nothing of it shows the secrets of others: what
// the guest wrote itself may hold its own.
func (r *residueRun) call(ctx context.Context, who int, name, arguments string, own []*secret) *Result {
	result := r.p.Call(ctx, Request{Tool: name, Arguments: []byte(arguments), Principal: principal(who)})
	shown, err := json.Marshal(result)
	if err != nil {
		r.report("%v", err)
	}
	text := ""
	if result.Err != nil {
		text = result.Err.Error()
	}
	for _, s := range append(r.left, r.kept...) {
		if s.in(shown) && !slices.Contains(own, s) || s.in([]byte(text)) || s.in(result.Stderr) && !slices.Contains(own, s) {
			r.report("%s: %s tells a secret: %s, %s, %q", principal(who), name, shown, text, result.Stderr)
		}
	}
	r.mu.Lock()
	r.calls++
	r.mu.Unlock()
	return result
}

// errShown is a secret in the memory of an instance that waits.
var errShown = errors.New("memory of an instance that waits holds a secret")

// inside looks into an instance that waits for a call.
func (r *residueRun) inside() {
	p, ok := r.p.instances.(*pool)
	if !ok {
		return
	}
	i := p.shelf.take()
	if i == nil {
		return
	}
	defer p.shelf.put(i)
	if err := r.look(p, i); err != nil {
		r.report("%v", err)
	}
}

func (r *residueRun) look(p *pool, i *Instance) error {
	memory, ok := i.module.Memory().Read(0, i.module.Memory().Size())
	if !ok || uint64(len(memory)) != p.state.image.Size() {
		return fmt.Errorf("memory of %d bytes, the image has %d", len(memory), p.state.image.Size())
	}
	for _, s := range append(r.left, r.kept...) {
		if s.in(memory) {
			return errShown
		}
	}
	for k, g := range i.globals {
		if g.Get() != p.state.globals[k] {
			return fmt.Errorf("global %d is %d, was %d", k, g.Get(), p.state.globals[k])
		}
	}
	if i.slot.Load() != nil {
		return errors.New("an instance that waits serves a call")
	}
	return nil
}

// TestResidueGuestsSee: a guest finds what it leaves in one call itself, and what
// another principal was kept where it is given that one's.
func TestResidueGuestsSee(t *testing.T) {
	for _, g := range residueGuestsHere() {
		p := g.load(t, StrategyNew, "")
		r := newResidueRun(t, p)
		r.keep(0)
		arguments := fmt.Sprintf(`{"fillFirst":true,"seek":%q,"own":%q,"answers":true}`, allShares([]*secret{r.left[0], r.kept[0]}), r.left[0].shares())
		result := p.Call(t.Context(), Request{Tool: "trade", Arguments: []byte(arguments), Principal: principal(0)})
		if result.Outcome != OK {
			t.Fatalf("%s: %s, %v\n%s", g.name, result.Outcome, result.Err, result.Stderr)
		}
		text := residueText(result)
		for _, place := range g.sees {
			if !strings.Contains(text, place) {
				t.Errorf("%s: did not find %q in\n%s", g.name, place, text)
			}
		}
		arguments = fmt.Sprintf(`{"seek":%q}`, r.kept[0].shares())
		text = residueText(p.Call(t.Context(), Request{Tool: "trade", Arguments: []byte(arguments), Principal: principal(0)}))
		places := []string{"volume "}
		if g.module == "" {
			places = append(places, "keys ")
		}
		for _, place := range places {
			if !strings.Contains(text, place) {
				t.Errorf("%s: did not find %q in\n%s", g.name, place, text)
			}
		}
	}
}
