package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// gateModel is what a gate should hold: who is in, and who waits, in the order
// in which they came.
type gateModel struct {
	gate      *gate
	in, waits []*ticket
}

// of returns what the principal has.
func (m *gateModel) of(principal string) (s share) {
	for _, k := range m.in {
		if k.principal == principal {
			s.running, s.memory = s.running+1, s.memory+k.memory
		}
	}
	for _, k := range m.waits {
		if k.principal == principal {
			s.waiting++
		}
	}
	return s
}

// heldBack reports whether a call of the principal waits for its others alone.
func (m *gateModel) heldBack(principal string, memory int64) bool {
	for _, k := range m.waits {
		if k.principal == principal {
			memory = k.memory // nobody overtakes his own
			break
		}
	}
	s, l := m.of(principal), m.gate.limits
	return principal != LocalPrincipal && s.running > 0 && (s.running+1 > max(1, l.Calls/2) || s.memory+memory > l.Memory/2)
}

// first returns the first that waits for room, or nil.
func (m *gateModel) first() *ticket {
	for _, k := range m.waits {
		if !m.heldBack(k.principal, k.memory) {
			return k
		}
	}
	return nil
}

func (m *gateModel) room(memory int64) bool {
	for _, k := range m.in {
		memory += k.memory
	}
	return len(m.in) < m.gate.limits.Calls && memory <= m.gate.limits.Memory
}

// atOnce reports whether a call need not wait.
func (m *gateModel) atOnce(principal string, memory int64) bool {
	return m.of(principal).waiting == 0 && m.first() == nil && !m.heldBack(principal, memory) && m.room(memory)
}

func (m *gateModel) comeAtOnce(t *rapid.T, principal string, memory int64) {
	want := m.atOnce(principal, memory)
	k := m.gate.atOnce(principal, memory)
	if (k != nil) != want {
		t.Fatalf("%s is in at once: %t, want %t", principal, k != nil, want)
	}
	if k != nil {
		m.in = append(m.in, k)
	}
}

func (m *gateModel) come(t *rapid.T, principal string, memory int64) {
	l, own := m.gate.limits, m.of(principal).waiting
	free := len(m.waits) < l.Waiting && (principal == LocalPrincipal || own < max(1, l.Waiting/2))
	atOnce := m.atOnce(principal, memory)
	k, err := m.gate.queued(principal, memory)
	if (err == nil) != (free || atOnce) || err != nil && !errors.Is(err, ErrBusy) {
		t.Fatalf("%s with %d of %d waiting: %v", principal, own, len(m.waits), err)
	}
	if err == nil {
		m.waits = append(m.waits, k)
	}
}

// admitted takes those in whom the gate let in. Whom they overtook waits for
// others of his own.
func (m *gateModel) admitted(t *rapid.T) {
	var left, overtook []*ticket
	for _, k := range m.waits {
		if !k.in.Load() {
			left = append(left, k)
			continue
		}
		m.in = append(m.in, k)
		overtook = append(overtook, left...)
	}
	m.waits = left
	for _, k := range overtook {
		if !m.heldBack(k.principal, k.memory) {
			t.Fatalf("a call of %s was overtaken", k.principal)
		}
	}
}

func (m *gateModel) check(t *rapid.T) {
	m.admitted(t)
	g, l := m.gate, m.gate.limits
	var all share
	for _, principal := range []string{"alice", "bob", "carol", LocalPrincipal} {
		s := m.of(principal)
		all = share{all.running + s.running, all.memory + s.memory, all.waiting + s.waiting}
		if counted, ok := g.shares[principal]; ok != (s != share{}) || ok && counted != s {
			t.Fatalf("counts %+v of %s, has %+v", counted, principal, s)
		}
		if principal != LocalPrincipal && (s.running > max(1, l.Calls/2) || s.running > 1 && s.memory > l.Memory/2 || s.waiting > max(1, l.Waiting/2)) {
			t.Fatalf("%s has more than half of %+v: %+v", principal, l, s)
		}
	}
	if counted := (share{g.running, g.memory, len(g.queue)}); counted != all {
		t.Fatalf("counts %+v, are %+v", counted, all)
	}
	if all.running > l.Calls || all.memory > l.Memory || all.waiting > l.Waiting {
		t.Fatalf("over the limits: %+v", all)
	}
	if k := m.first(); k != nil && m.room(k.memory) {
		t.Fatalf("a call of %s waits for which there is room", k.principal)
	}
}

// TestGateAdmitsInOrder: whatever comes, leaves and gives up, what is in keeps
// to the limits and to half of them for each principal, nobody is overtaken but
// by others while his own have their share, and nobody waits for whom there is
// room.
func TestGateAdmitsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &gateModel{gate: &gate{limits: CallLimits{
			Calls:   rapid.IntRange(1, 6).Draw(t, "running"),
			Waiting: rapid.IntRange(1, 8).Draw(t, "waiting"),
			Memory:  rapid.Int64Range(10, 40).Draw(t, "memory"),
		}}}
		pick := func(t *rapid.T, from []*ticket) int {
			if len(from) == 0 {
				t.Skip("nobody")
			}
			return rapid.IntRange(0, len(from)-1).Draw(t, "who")
		}
		principals := rapid.SampledFrom([]string{"alice", "bob", "carol", LocalPrincipal})
		memory := rapid.Int64Range(1, 10)
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				m.come(t, principals.Draw(t, "principal"), memory.Draw(t, "memory of the call"))
			},
			"come at once": func(t *rapid.T) {
				m.comeAtOnce(t, principals.Draw(t, "principal"), memory.Draw(t, "memory of the call"))
			},
			"withdraw": func(t *rapid.T) {
				i := pick(t, m.in)
				m.in[i].withdraw()
				m.in = slices.Delete(m.in, i, i+1)
			},
			"leave": func(t *rapid.T) {
				i := pick(t, m.in)
				m.in[i].leave()
				m.in = slices.Delete(m.in, i, i+1)
			},
			"give up": func(t *rapid.T) {
				i := pick(t, m.waits)
				m.gate.forget(m.waits[i])
				m.gate.admit()
				m.waits = slices.Delete(m.waits, i, i+1)
			},
			"": m.check,
		})
	})
}

// TestGateOvertakesNobody: a call that needs little does not pass one that waits
// for room, and does where that one waits for others of its own.
func TestGateOvertakesNobody(t *testing.T) {
	come := func(g *gate, principal string, memory int64) *ticket {
		k, err := g.queued(principal, memory)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	g := &gate{limits: CallLimits{Calls: 4, Waiting: 4, Memory: 10}}
	first, large, small := come(g, LocalPrincipal, 6), come(g, LocalPrincipal, 6), come(g, "bob", 1)
	if !first.in.Load() || large.in.Load() || small.in.Load() {
		t.Errorf("in: first %t, large %t, small %t; want the first alone", first.in.Load(), large.in.Load(), small.in.Load())
	}
	g = &gate{limits: CallLimits{Calls: 4, Waiting: 4, Memory: 10}}
	first, own, other := come(g, "alice", 5), come(g, "alice", 1), come(g, "bob", 1)
	if !first.in.Load() || own.in.Load() || !other.in.Load() {
		t.Errorf("in: first %t, own %t, other %t; want all but the own", first.in.Load(), own.in.Load(), other.in.Load())
	}
}

// TestGateForgetsNobody: callers that give up at any moment leave their place.
func TestGateForgetsNobody(t *testing.T) {
	g := &gate{limits: CallLimits{Calls: 3, Waiting: 40, Memory: 20, Wait: time.Minute}}
	var wg sync.WaitGroup
	for i := range 50 {
		principal := []string{"alice", "bob", LocalPrincipal}[i%3]
		wg.Go(func() {
			for j := range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration((i*j)%7)*100*time.Microsecond)
				if k, err := g.enter(ctx, principal, int64(1+(i+j)%15)); err == nil {
					goruntime.Gosched()
					k.leave()
				} else if !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if g.running != 0 || g.memory != 0 || len(g.queue) != 0 || len(g.shares) != 0 {
		t.Errorf("left: %d calls, %d bytes, %d waiting, %d principals", g.running, g.memory, len(g.queue), len(g.shares))
	}
}

// TestBusyTellsOfTheShare: a principal at its share is told when its own calls
// will have been served, not the few of others.
func TestBusyTellsOfTheShare(t *testing.T) {
	g := &gate{limits: CallLimits{Calls: 4, Waiting: 6, Memory: 100}, mean: 8 * time.Second}
	for range 5 {
		if _, err := g.queued("alice", 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.queued("alice", 1)
	busy, ok := errors.AsType[*BusyError](err)
	if !ok || busy.RetryAfter != 16*time.Second { // 4 calls of 8 s, 2 at once
		t.Errorf("%v", err)
	}
}
