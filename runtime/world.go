package runtime

import (
	"context"
	"math/rand/v2"

	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/tool"
)

// world returns what one run of a call works on.
func (p *Package) world(ctx context.Context, s *callSpec, opened []*folder) (world, error) {
	e, principal, id := p.engine, s.report.info.Principal, s.report.info.ID
	w := world{files: p.files, store: e.store, cpus: e.cpus, intents: e.intents, shared: p.volumes.shared}
	if e.store != nil {
		w.reader = &lateSnapshot{store: e.store}
		w.space = store.Space{Principal: principal, Package: p.name, Area: kv.Area}
		w.sender = outbox.Sender{Principal: principal, Package: p.name, Tool: s.tool.Definition.Name, Arguments: s.arguments, CallID: id}
	}
	var err error
	w.volumes, err = p.volumes.parts(ctx, principal, opened, w.reader)
	return w, err
}

// ReplayPolicy says how often calls of a tool that claims to be idempotent are run
// a second time. The zero value is the strictest.
type ReplayPolicy uint8

// The policies. With any but ReplayAlways the tool is listed as not idempotent.
const (
	ReplayAlways ReplayPolicy = iota
	ReplaySample              // one call in ten
	ReplayOff
)

const sampled = 10

// policy returns how a tool is replayed.
func (p *Package) policy(name string) ReplayPolicy {
	return replayPolicy(p.replay, name)
}

func replayPolicy(all map[string]ReplayPolicy, name string) ReplayPolicy {
	if policy, ok := all[name]; ok {
		return policy
	}
	return all[DefaultReplay]
}

// DefaultReplay is the name, in [Binding.Replay], of all tools that are not named.
const DefaultReplay = "default"

// replays reports whether this call of a tool is run a second time.
func (p *Package) replays(name string) bool {
	switch p.policy(name) {
	case ReplayAlways:
		return true
	case ReplaySample:
		return rand.N(sampled) == 0
	case ReplayOff:
		return false
	}
	return true
}

// firstLook reports whether no call of a tool, as this module has it, was
// committed in this process with a third run before it: that is due then.
func (p *Package) firstLook(name string) bool {
	_, seen := p.looked.Load(name)
	return !seen
}

// rulesOf returns the exceptions that are approved, and those that only are
// requested.
func rulesOf(b Binding, requested tool.Relaxations) (additive.Rules, error) {
	r := additive.Rules{VolatileFiles: b.VolatileFiles, AppendOnly: b.AppendOnly}
	var err error
	if r.Volatile, r.History, r.Transitions, err = relaxed(b.Relaxations); err != nil {
		return r, err
	}
	q := &r.Requested
	q.Recoverable = requested.Recoverable
	q.Volatile, q.History, q.Transitions, err = relaxed(requested)
	return r, err
}

func relaxed(r tool.Relaxations) (v []additive.Pointer, h []additive.History, ts []additive.Transition, err error) {
	for _, s := range r.Volatile {
		p, err := additive.ParsePointer(s)
		if err != nil {
			return nil, nil, nil, err
		}
		v = append(v, p)
	}
	for _, x := range r.History {
		h = append(h, additive.History{Of: x.Of, Under: x.Under})
	}
	for _, x := range r.Transitions {
		p, err := additive.ParsePointer(x.At)
		if err != nil {
			return nil, nil, nil, err
		}
		ts = append(ts, additive.Transition{At: p, From: x.From, To: x.To})
	}
	return v, h, ts, nil
}
