// Package tx is the transaction that a call is: overlays on its volumes, what
// they would leave, judges over it, and the commit.
//
// A Tx is begun, prepared and committed, or rolled back at any time before
// that. What is prepared is data: it can be stored and committed later by
// another Tx on the same volumes, or never.
//
// A commit to one volume is whole or not at all. To several volumes it is not
// yet: conflicts on all of them are looked for before the first is changed, but
// when a later one cannot be changed after all, or the process is killed in
// between, the earlier ones stay changed. [ErrPartial] says so.
package tx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Errors of transactions.
var (
	// ErrDone: the transaction was committed or rolled back.
	ErrDone = errors.New("transaction has ended")
	// ErrNotPrepared: there is nothing that could be committed.
	ErrNotPrepared = errors.New("transaction was not prepared")
	// ErrVolumes: volumes share a name, or a prepared change is for others.
	ErrVolumes = errors.New("transaction has other volumes")
	// ErrPartial: some volumes were changed and others could not be.
	ErrPartial = errors.New("transaction committed in part")
)

// Volume is a store and where a call sees it.
type Volume struct {
	Name  string
	Path  string       // where the guest sees it, absolute
	Store volume.Store // nil: scratch, in memory, which is no environment and goes with the call
}

// Tx is one call's transaction. Its methods are safe for concurrent use, its
// overlays are not.
type Tx struct {
	volumes  []Volume // sorted by name
	overlays map[string]*volume.Overlay
	broken   error

	mu    sync.Mutex
	ended bool
}

// Begin returns a transaction on volumes, in which nothing is changed. The
// budget of the options is shared by all of them. Volumes must have different
// names, or preparing fails with [ErrVolumes].
func Begin(vols []Volume, o volume.Options) *Tx {
	t := &Tx{volumes: slices.Clone(vols), overlays: map[string]*volume.Overlay{}}
	slices.SortStableFunc(t.volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range t.volumes {
		if _, twice := t.overlays[v.Name]; twice {
			t.broken = fmt.Errorf("%w: %q twice", ErrVolumes, v.Name)
			continue
		}
		t.overlays[v.Name] = volume.New(v.Store, o)
	}
	return t
}

// Overlay returns the call's view of a volume, nil for one that it has not.
func (t *Tx) Overlay(name string) *volume.Overlay { return t.overlays[name] }

// Effects returns what the call read in all volumes, then what it would leave.
func (t *Tx) Effects() []capabilities.Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.effects()
}

func (t *Tx) effects() []capabilities.Effect {
	var reads, changes []capabilities.Effect
	for _, v := range t.volumes {
		if v.Store == nil {
			continue
		}
		for _, e := range t.overlays[v.Name].Effects(v.Path) {
			if e.Verb == capabilities.Read {
				reads = append(reads, e)
			} else {
				changes = append(changes, e)
			}
		}
	}
	return append(reads, changes...)
}

// Prepared is what a call would leave, complete enough to be committed by
// another process.
type Prepared struct {
	Changes map[string]*volume.Change `json:"changes"` // by volume name, also where only guards are in it
	Effects []capabilities.Effect     `json:"effects"`
}

// Empty reports whether committing would change nothing. Guards are checked
// all the same.
func (p *Prepared) Empty() bool {
	for _, c := range p.Changes {
		if !c.Empty() {
			return false
		}
	}
	return true
}

// Judge refuses what a call would leave by returning an error: a
// [*capabilities.Violation] when the call's claim excludes it. It must not
// change what it judges.
type Judge func(ctx context.Context, p *Prepared) error

// Prepare collects what the call would leave and has it judged, in the order
// of the judges; the first error is returned. The call's program must have
// ended. It can be repeated. It returns [ErrDone] after the end, and the errors
// of [volume.Overlay.Change].
func (t *Tx) Prepare(ctx context.Context, judges ...Judge) (*Prepared, error) {
	p, err := t.collect()
	if err != nil {
		return nil, err
	}
	for _, judge := range judges {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := judge(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (t *Tx) collect() (*Prepared, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return nil, ErrDone
	case t.broken != nil:
		return nil, t.broken
	}
	p := &Prepared{Changes: map[string]*volume.Change{}}
	for _, v := range t.volumes {
		if v.Store == nil {
			continue
		}
		c, err := t.overlays[v.Name].Change()
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", v.Name, err)
		}
		p.Changes[v.Name] = c
	}
	p.Effects = t.effects()
	return p, nil
}

// Commit applies what was prepared, volume by volume in the order of their
// names, and ends the transaction. A call that only read is checked too. It can
// not be cancelled.
//
// It returns [volume.ErrConflict] when a guard no longer holds: nothing was
// changed, and the call has to be run again. It returns [ErrPartial], which
// matches no other error, when some volumes were changed and one could not be.
// With [ErrNotPrepared] and [ErrVolumes] the transaction goes on.
func (t *Tx) Commit(ctx context.Context, p *Prepared) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return ErrDone
	case t.broken != nil:
		return t.broken
	case p == nil:
		return ErrNotPrepared
	}
	for name, c := range p.Changes {
		known := slices.ContainsFunc(t.volumes, func(v Volume) bool { return v.Name == name && v.Store != nil })
		if !known || c == nil {
			return fmt.Errorf("%w: %q", ErrVolumes, name)
		}
	}
	err := t.apply(context.WithoutCancel(ctx), p)
	_ = t.end() // what is committed stays so, whatever closing read files says
	return err
}

// apply checks all volumes before it changes the first. Those that are only
// read come first, so that nothing needs to be checked after a change.
func (t *Tx) apply(ctx context.Context, p *Prepared) error {
	var changed []Volume
	for _, v := range t.volumes {
		c := p.Changes[v.Name]
		switch {
		case c == nil:
		case c.Empty():
			if err := v.Store.Apply(ctx, c); err != nil {
				return fmt.Errorf("volume %q: %w", v.Name, err)
			}
		default:
			changed = append(changed, v)
		}
	}
	if len(changed) > 1 {
		if err := check(ctx, changed, p); err != nil {
			return err
		}
	}
	for i, v := range changed {
		if err := v.Store.Apply(ctx, p.Changes[v.Name]); err != nil {
			if i > 0 {
				// The cause is not wrapped: a conflict would invite running the
				// call again, on top of what it has changed.
				return fmt.Errorf("%w: volume %q: %s", ErrPartial, v.Name, err.Error())
			}
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return nil
}

func check(ctx context.Context, vols []Volume, p *Prepared) error {
	for _, v := range vols {
		c, ok := v.Store.(volume.Checker)
		if !ok {
			continue
		}
		if err := c.Check(ctx, p.Changes[v.Name]); err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return nil
}

// Rollback drops all that the call did. It can be repeated, and does nothing
// after a commit.
func (t *Tx) Rollback() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	return t.end()
}

// end releases what the overlays hold.
func (t *Tx) end() error {
	t.ended = true
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.overlays)) {
		errs = append(errs, t.overlays[name].Close())
	}
	return errors.Join(errs...)
}
