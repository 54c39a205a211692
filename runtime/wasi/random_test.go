package wasi

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var (
	sequences = flag.Int("sequences", 12000, "how many random guests TestRandomGuests runs")
	firstSeed = flag.Uint64("seed", 1, "seed of the first random guest; the others follow")
)

// randomGrants are what random guests claim and hold, in turn.
var randomGrants = []grant{
	{capabilities.Effective{ReadOnly: true}, capabilities.ReadAccess},
	{capabilities.Effective{ReadOnly: true, OpenWorld: true}, capabilities.ReadAccess},
	{capabilities.Effective{Destructive: true}, capabilities.ReadAccess},
	{capabilities.Effective{Destructive: true, OpenWorld: true}, capabilities.WriteAccess},
}

// TestRandomGuests runs sequences of calls with hostile arguments under every
// claim, over a folder that lies beside a secret and has links out. Whatever a
// guest does, nothing changes but what its claim allows, nothing of the secret
// reaches it, the host does not crash, and no descriptor is left open.
//
//	go test ./runtime/wasi -run RandomGuests -sequences 1000000
func TestRandomGuests(t *testing.T) {
	r := newRandomRun(t)
	open := openDescriptors(t)
	for i := range uint64(*sequences) {
		seed := *firstSeed + i
		if err := r.sequence(seed); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(r.trace, "\n"))
		}
		if i%64 == 0 {
			if now := openDescriptors(t); now != open {
				t.Fatalf("seed %d or up to 64 before: %d descriptors open, %d at first", seed, now, open)
			}
		}
	}
	t.Logf("stops %v, commits %d", r.stops, r.commits)
	for _, kind := range []string{"none", "violation", "limit", "exit", "output", "interrupt"} {
		if *sequences >= 10000 && r.stops[kind] == 0 {
			t.Errorf("no guest ended with %s: the generator misses its aim", kind)
		}
	}
	if *sequences >= 10000 && r.commits == 0 {
		t.Error("no guest changed anything: the generator misses its aim")
	}
}

// openDescriptors counts the descriptors of this process; 0 where that cannot
// be done.
func openDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// randomRun is one guest instance that serves all sequences, and the folder
// that they are let loose on.
type randomRun struct {
	*guest
	world   hostile
	memory0 []byte // the guest's memory at the start of a sequence
	trace   []string
	stops   map[string]int
	commits int
}

func newRandomRun(t *testing.T) *randomRun {
	r := &randomRun{guest: newGuest(t, forwarder(false)), stops: map[string]int{}}
	r.world.build(t)
	r.memory0 = randomMemory()
	return r
}

// ending is what a sequence leaves.
type ending struct {
	ledger *capabilities.Ledger
	tx     *tx.Tx
	out    bytes.Buffer
	stop   error
}

// sequence runs one random guest and returns what is wrong.
func (r *randomRun) sequence(seed uint64) error {
	g := randomGrants[seed%uint64(len(randomGrants))]
	e := &ending{ledger: g.ledger()}
	e.tx = tx.Begin(tx.Parts{Volumes: []tx.Volume{{Name: "data", Path: "/data", Store: r.world.dir}}},
		volume.Options{Budget: &volume.Budget{Bytes: 1200, Files: 2}})
	scratch := volume.New(nil, volume.Options{Budget: &volume.Budget{Bytes: 2048, Files: 4}})
	err := r.run(rand.New(rand.NewPCG(seed, 0)), e, scratch)
	if err == nil {
		err = r.judge(g, e)
	}
	return errors.Join(err, e.tx.Rollback(), scratch.Close())
}

// run makes the calls of a sequence.
func (r *randomRun) run(rnd *rand.Rand, e *ending, scratch *volume.Overlay) error {
	r.trace = r.trace[:0]
	r.Memory().Write(0, r.memory0)
	r.process = NewProcess(Options{
		Args: []string{"tool", "argument"}, Env: []string{"KEY=value"},
		Stdin: strings.NewReader("standard input"), Stdout: &limited{to: &e.out, n: 100}, Stderr: io.Discard,
		Volumes: []*files.Volume{files.New("data", "/data", e.tx.Overlay("data"), e.ledger), files.Scratch("/tmp", scratch, e.ledger)},
		Ledger:  e.ledger, Random: zeros{},
	})
	defer r.process.Close()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	clock := &virtualClock{left: 5 * time.Millisecond, end: cancel}
	r.process.clock = clock
	for range 1 + rnd.IntN(24) {
		name := randomFunction(rnd)
		args := randomArguments(rnd, name)
		result, err := r.functions[name].Call(ctx, args...)
		r.trace = append(r.trace, fmt.Sprintf("%s%d = %v, %v", name, args, result, err))
		if err == nil {
			continue
		}
		e.stop = err
		return r.stopped(err)
	}
	r.stops["none"]++
	return nil
}

// virtualClock stands still but for what a guest sleeps, and ends the call when
// that is too long: how a sequence goes does not depend on the machine.
type virtualClock struct {
	slept, left time.Duration
	end         func()
}

func (c *virtualClock) Now() time.Time           { return epoch.Add(c.slept) }
func (c *virtualClock) Monotonic() time.Duration { return c.slept }
func (c *virtualClock) Late() error              { return nil }

func (c *virtualClock) Sleep(_ context.Context, d time.Duration) {
	if d > c.left {
		c.end()
		return
	}
	c.slept, c.left = c.slept+d, c.left-d
}

// stopped counts what stopped a guest and returns an error if nothing may have.
func (r *randomRun) stopped(err error) error {
	var (
		crash     goruntime.Error
		violation *capabilities.Violation
		limit     *volume.LimitError
		exit      *ExitError
		output    *OutputLimitError
		interrupt *InterruptError
		kind      string
	)
	switch {
	case errors.As(err, &crash):
		return fmt.Errorf("host crashed: %w", err)
	case errors.As(err, &violation):
		kind = "violation"
	case errors.As(err, &limit):
		kind = "limit"
	case errors.As(err, &exit):
		kind = "exit"
	case errors.As(err, &output):
		kind = "output"
	case errors.As(err, &interrupt):
		kind = "interrupt"
	default:
		return fmt.Errorf("stopped by what stops no guest: %w", err)
	}
	r.stops[kind]++
	if r.process.Stop() == nil {
		return fmt.Errorf("stop forgotten: %w", err)
	}
	return nil
}

// judge holds what a sequence left against what its claim allows.
func (r *randomRun) judge(g grant, e *ending) error {
	broken := errors.Is(e.stop, capabilities.ErrViolation)
	if broken != (len(e.ledger.Violations()) > 0) {
		return fmt.Errorf("stop %w with %d violations recorded", e.stop, len(e.ledger.Violations()))
	}
	if m, _ := r.Memory().Read(0, r.Memory().Size()); bytes.Contains(m, secret) || bytes.Contains(e.out.Bytes(), secret) {
		return errors.New("secret reached the guest")
	}
	p, err := e.tx.Prepare(r.t.Context())
	if _, spent := errors.AsType[*volume.LimitError](err); spent {
		return r.world.same()
	}
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if !p.Empty() && g.access < capabilities.WriteAccess {
		return fmt.Errorf("changed under %+v: %+v", g, p.Effects)
	}
	if err := r.world.same(); err != nil || e.stop != nil {
		return err
	}
	if err := e.tx.Commit(r.t.Context(), p, store.Commit{}); err != nil {
		return fmt.Errorf("commit %+v: %w", p.Effects, err)
	}
	if p.Empty() {
		return r.world.same()
	}
	r.commits++
	return r.world.restore(r.t)
}

// limited passes n bytes on and then stops the guest.
type limited struct {
	to io.Writer
	n  int
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.n {
		return 0, &OutputLimitError{}
	}
	l.n -= len(b)
	return l.to.Write(b)
}

// zeros is a source of no randomness, so that a seed is all there is.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

var secret = []byte("TOPSECRET")

// hostile is a folder with a volume in it, and what it looked like at first.
type hostile struct {
	top    string
	dir    *volume.HostDir
	outer  string // digest of all but the volume
	volume string
}

func (h *hostile) build(t testing.TB) {
	t.Helper()
	if h.top == "" {
		h.top = fixture(t)
	} else if err := refill(filepath.Join(h.top, "volume")); err != nil {
		t.Fatal(err)
	}
	if h.dir == nil {
		dir, err := volume.OpenDir(filepath.Join(h.top, "volume"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dir.Close(); err != nil {
				t.Error(err)
			}
		})
		h.dir = dir
	}
	h.outer, h.volume = digest(h.top)
}

// refill puts the fixture's files back into a volume that was changed.
func refill(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return fill(dir)
}

// same returns an error unless nothing changed, in the volume and around it.
func (h *hostile) same() error {
	outer, inner := digest(h.top)
	if outer != h.outer || inner != h.volume {
		return fmt.Errorf("host changed:\n%s%s\nwas\n%s%s", outer, inner, h.outer, h.volume)
	}
	return nil
}

// restore puts the volume back after a commit, which may have changed nothing
// around it.
func (h *hostile) restore(t testing.TB) error {
	if outer, _ := digest(h.top); outer != h.outer {
		return fmt.Errorf("host changed around the volume:\n%s\nwas\n%s", outer, h.outer)
	}
	h.build(t)
	return nil
}

// digest describes all files below a folder: those in its volume, and the
// others.
func digest(top string) (outer, inner string) {
	var b [2]strings.Builder
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, top)
		in, content := 0, ""
		if strings.HasPrefix(name, "/volume/") {
			in = 1
		}
		switch {
		case i.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(raw)
		case i.Mode()&os.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		if name == "/volume" {
			return nil // its times are the volume's own
		}
		fmt.Fprintf(&b[in], "%s %v %d %q\n", name, i.Mode(), i.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil {
		return err.Error(), err.Error()
	}
	return b[0].String(), b[1].String()
}
