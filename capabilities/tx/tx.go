// Package tx is the transaction that a call is: overlays on its volumes, what
// they would leave, judges over it, and the commit.
//
// A Tx is begun, prepared and committed, or rolled back at any time before
// that. What is prepared is data: it can be stored and committed later by
// another Tx on the same volumes, or never.
//
// What a call leaves in the store (managed volumes, keys, messages of the outbox,
// what the host records beside them) is one commit of it. Host folders are
// outside of the store: what will be done in each is staged, and noted in that
// commit as an intent, which is carried out after it, by another process if need
// be. That commit is the point from which on the call is saved.
//
// A commit stages what is to be changed, locks all volumes of the transaction,
// also those that were only read, checks all guards, publishes, and lets go:
// calls are as if they had run one after another, over all volumes that they
// share. Only a store that is no [volume.Locker] cannot take part in that.
//
// Without a store a commit is whole or not at all, too: when a later volume cannot be changed after
// all, the earlier ones are changed back. Where that fails, or the earlier one is
// no Locker, [ErrPartial] says so. Nobody does when the process is killed in
// between.
package tx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Errors of transactions.
var (
	// ErrDone: the transaction was committed or rolled back.
	ErrDone = errors.New("transaction has ended")
	// ErrNotPrepared: there is nothing that could be committed.
	ErrNotPrepared = errors.New("transaction was not prepared")
	// ErrVolumes: volumes share a name or a folder, or a prepared change is for
	// others.
	ErrVolumes = errors.New("transaction has other volumes")
	// ErrPartial: some volumes were changed, others could not be, and the former
	// could not be changed back.
	ErrPartial = errors.New("transaction committed in part")
	// ErrPending: the transaction is committed, and a folder could not be changed
	// yet. It is before it is read again.
	ErrPending = errors.New("transaction committed, a folder is still to be changed")
)

// Volume is a tree of files and where a call sees it. With neither Store nor Tree
// it is scratch, in memory, which is no environment and goes with the call.
type Volume struct {
	Name  string
	Path  string       // where the guest sees it, absolute
	Store volume.Store // outside of the transaction's store
	Tree  Tree         // in the transaction's store
}

// Tree is a volume that is kept in the store.
type Tree interface {
	volume.Base
	// Writes returns a change as the store takes it. What it makes durable before
	// (blobs) is of no use until the writes are committed.
	Writes(ctx context.Context, c *volume.Change) ([]store.Guard, []store.RangeGuard, []store.Write, error)
}

// base returns what was there, nil for scratch.
func (v Volume) base() volume.Base {
	switch {
	case v.Tree != nil:
		return v.Tree
	case v.Store != nil:
		return v.Store
	}
	return nil
}

// folder says where the volume is, as far as it tells.
func (v Volume) folder() volume.Folder {
	if l, ok := v.Store.(volume.Locker); ok {
		return l.Folder()
	}
	return volume.Folder{}
}

// Participant is a part of the environment that is in the store and is no tree
// of files: keys, the outbox.
type Participant interface {
	Name() string // other than those of all others of a transaction
	// Effects returns what the call read, and all that it would leave.
	Effects() (reads, changes []capabilities.Effect)
	// Prepare returns what the call would leave, as data; nil where it did not even
	// look.
	Prepare(ctx context.Context) (Redo, error)
	// Decode reads what the JSON encoding of such a Redo says.
	Decode(raw []byte) (Redo, error)
}

// Redo is what a call would leave in one participant. It encodes as JSON.
type Redo interface {
	Empty() bool // nothing would be written; guards are checked all the same
	// Enlist adds guards and writes to a commit.
	Enlist(ctx context.Context, c *store.Commit) error
}

// Parts is what a transaction works on.
type Parts struct {
	Volumes []Volume
	Others  []Participant
	Store   store.Store // nil: trees and other participants cannot be changed
	Intents *Intents    // of Store; needed where a folder is changed with it
}

// Tx is one call's transaction. Its methods are safe for concurrent use, its
// overlays are not.
type Tx struct {
	store   store.Store
	intents *Intents
	others  []Participant
	volumes []Mount        // sorted by name
	options volume.Options // of the overlays
	broken  error

	mu    sync.Mutex
	ended bool
}

// Mount is a volume of a transaction with the call's view of it, which is made when
// it is first asked for: what nobody asks for was neither read nor changed.
type Mount struct {
	Volume
	tx      *Tx
	overlay *volume.Overlay
}

// Overlay returns the call's view of the volume.
func (m *Mount) Overlay() *volume.Overlay {
	m.tx.mu.Lock()
	defer m.tx.mu.Unlock()
	if m.overlay == nil {
		m.overlay = volume.New(m.base(), m.tx.options)
		if m.tx.ended {
			_ = m.overlay.Close() // nothing is open in it
		}
	}
	return m.overlay
}

// Begin returns a transaction in which nothing is changed. The
// budget of the options is shared by all of them. Volumes must have different
// names, and none may be the folder of another or in it, or preparing fails with
// [ErrVolumes]; [Tx.Err] tells beforehand.
func Begin(p Parts, o volume.Options) *Tx {
	t := &Tx{store: p.Store, intents: p.Intents, others: p.Others}
	if len(p.Volumes) == 0 {
		return t
	}
	if o.Budget == nil {
		o.Budget = &volume.Budget{}
	}
	t.options, t.volumes = o, make([]Mount, len(p.Volumes))
	for i, v := range p.Volumes {
		t.volumes[i] = Mount{Volume: v, tx: t}
	}
	slices.SortStableFunc(t.volumes, func(a, b Mount) int { return strings.Compare(a.Name, b.Name) })
	t.broken = apart(t.volumes)
	return t
}

// apart refuses volumes that are not apart from each other.
func apart(vols []Mount) error {
	for i, a := range vols {
		for _, b := range vols[:i] {
			if a.Name == b.Name {
				return fmt.Errorf("%w: %q twice", ErrVolumes, a.Name)
			}
			if a.folder().Overlaps(b.folder()) {
				return fmt.Errorf("%w: %q and %q share a folder", ErrVolumes, b.Name, a.Name)
			}
		}
	}
	return nil
}

// Err returns why the transaction cannot be prepared: [ErrVolumes], or nil.
func (t *Tx) Err() error { return t.broken }

// Overlay returns the call's view of a volume, nil for one that it has not.
func (t *Tx) Overlay(name string) *volume.Overlay {
	if m := t.Mount(name); m != nil {
		return m.Overlay()
	}
	return nil
}

// Mount returns a volume of the call, nil for one that it has not.
func (t *Tx) Mount(name string) *Mount {
	for i := range t.volumes {
		if t.volumes[i].Name == name {
			return &t.volumes[i]
		}
	}
	return nil
}

// Effects returns what the call read in all volumes, then what it would leave,
// where what concerns files may be cut as [volume.Overlay.Effects] says.
func (t *Tx) Effects() []capabilities.Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	reads, changes := t.effects(func(o *volume.Overlay, mount string) (reads, changes []capabilities.Effect) {
		list := o.Effects(mount)
		at := slices.IndexFunc(list, func(e capabilities.Effect) bool { return e.Verb != capabilities.Read })
		if at < 0 {
			at = len(list)
		}
		return list[:at:at], list[at:]
	})
	return append(reads, changes...)
}

// effects returns what each volume says of itself, and the other participants.
func (t *Tx) effects(of func(o *volume.Overlay, mount string) (reads, changes []capabilities.Effect)) (reads, changes []capabilities.Effect) {
	for _, v := range t.volumes {
		if v.base() != nil && v.overlay != nil {
			r, c := of(v.overlay, v.Path)
			reads, changes = append(reads, r...), append(changes, c...)
		}
	}
	for _, o := range t.others {
		r, c := o.Effects()
		reads, changes = append(reads, r...), append(changes, c...)
	}
	return reads, changes
}

// Judge refuses what a call would leave by returning an error: a
// [*capabilities.Violation] when the call's claim excludes it. It must not
// change what it judges.
type Judge func(ctx context.Context, p *Prepared, v View) error

// View shows a judge the two sides of a volume, nil for one that the
// transaction has not. What a judge reads is no effect of the call. Of paths
// that the call changes, the commit makes sure that the judge saw what was
// there; what else a judge looks at is guarded by nothing.
type View interface {
	Base(name string) volume.Base   // what was there
	Result(name string) volume.Base // what the call would leave
}

type view struct{ t *Tx }

func (v view) Base(name string) volume.Base {
	for _, vol := range v.t.volumes {
		if vol.Name == name {
			return vol.base()
		}
	}
	return nil
}

func (v view) Result(name string) volume.Base {
	if v.Base(name) == nil {
		return nil
	}
	return v.t.Overlay(name).Result()
}

// Prepare collects what the call would leave and has it judged, in the order
// of the judges; the first error is returned. The call's program must have
// ended. It can be repeated. It returns [ErrDone] after the end, and the errors
// of [volume.Overlay.Change].
func (t *Tx) Prepare(ctx context.Context, judges ...Judge) (*Prepared, error) {
	p, err := t.collect(ctx)
	if err != nil {
		return nil, err
	}
	for _, judge := range judges {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := judge(ctx, p, view{t}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (t *Tx) collect(ctx context.Context) (*Prepared, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return nil, ErrDone
	case t.broken != nil:
		return nil, t.broken
	}
	p := &Prepared{}
	for _, v := range t.volumes {
		if v.base() == nil || v.overlay == nil {
			continue
		}
		c, err := v.overlay.Change()
		switch {
		case err != nil:
			return nil, fmt.Errorf("volume %q: %w", v.Name, err)
		case !untouched(c):
			p.change(v.Name, c)
		}
	}
	for _, o := range t.others {
		r, err := o.Prepare(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name(), err)
		}
		if r != nil {
			p.add(o.Name(), r)
		}
	}
	reads, left := t.effects((*volume.Overlay).Split)
	p.Effects = append(reads, left...)
	return p, nil
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
	for _, v := range t.volumes {
		if v.overlay == nil {
			continue
		}
		if err := v.overlay.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
