package runtime

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/runtime/image"
	"github.com/sandboxd/sandboxd/tool"
)

// leaky are instances of which a call leaves something to the next one.
type leaky struct {
	Instances
	reset func(*Instance) error // not all of it

	mu   sync.Mutex
	idle []*Instance
}

func (l *leaky) Get(ctx context.Context, s *startUp) (*Instance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		i := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return i, nil
	}
	return l.Instances.Get(ctx, s)
}

func (l *leaky) Put(i *Instance, f Fate) {
	i.slot.Store(nil)
	if f != Reset || l.reset(i) != nil {
		l.Instances.Put(i, Discard)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, i)
}

func (l *leaky) Close(ctx context.Context) error {
	for _, i := range l.idle {
		l.Instances.Put(i, Discard)
	}
	return l.Instances.Close(ctx)
}

// TestResidueFindsSabotage: where memory or globals are not put back, the next call
// finds the secret, and so does the host.
func TestResidueFindsSabotage(t *testing.T) {
	sabotages := []struct {
		name  string
		reset func(*Instance) error
		want  string
	}{
		{"nothing is put back", func(*Instance) error { return nil }, "memory "},
		{"memory is not", func(i *Instance) error { i.setGlobals(i.pool.state); return nil }, "memory "},
		{"globals are not", func(i *Instance) error { _, err := i.memory.Reset(); return err }, "global "},
	}
	for _, g := range residueGuestsHere() {
		if g.abi != tool.Reactor {
			continue
		}
		for _, s := range sabotages {
			if g.slow && s.name != "nothing is put back" {
				continue // a program in Go cannot go on by halves
			}
			t.Run(g.name+"/"+s.name, func(t *testing.T) {
				p := g.load(t, StrategyImage, image.Methods()[0])
				l := &leaky{Instances: p.instances, reset: s.reset}
				p.instances = l
				r := newResidueRun(t, p)
				fill := fmt.Sprintf(`{"own":%q}`, r.left[0].shares())
				if result := r.call(t.Context(), 0, "trade", fill, r.left[:1]); result.Outcome != OK {
					t.Fatalf("%s, %v", result.Outcome, result.Err)
				}
				if err := r.look(l.idle[0].pool, l.idle[0]); err == nil {
					t.Error("the host finds nothing in the instance")
				}
				seek := fmt.Sprintf(`{"seek":%q}`, allShares(r.others(1)))
				if text := residueText(r.call(t.Context(), 1, "trade", seek, nil)); !strings.Contains(text, s.want) {
					t.Errorf("the next call found %q, want %q", text, s.want)
				}
			})
		}
	}
}

// TestResidueIsSeen: the host knows a secret in whatever form a guest leaves it.
func TestResidueIsSeen(t *testing.T) {
	s := newSecret()
	var hiddenPiece, spread []byte
	for _, b := range s.bytes[8:16] {
		hiddenPiece = append(hiddenPiece, b^secretHidden)
		spread = append(spread, b, secretBetween)
	}
	for name, form := range map[string][]byte{
		"whole": s.bytes[:], "a piece": s.bytes[24:], "hidden": hiddenPiece, "spread": spread, "in hexadecimal": []byte(hex.EncodeToString(s.bytes[4:12])),
	} {
		if !s.in([]byte("before" + string(form) + "after")) {
			t.Errorf("%s: not seen", name)
		}
	}
	if s.in([]byte(s.shares())) || newSecret().in(s.bytes[:]) {
		t.Error("seen where it is not")
	}
}
