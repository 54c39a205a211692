package files

import (
	"errors"
	"fmt"
	"path"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Volume is the authority of one call over one tree of files.
type Volume struct {
	name    string
	mount   string
	from    Tree            // nil when sealed
	tree    *volume.Overlay // once it was touched
	ledger  *capabilities.Ledger
	visible bool // the law lets the call look at it
	claimed bool // the tool claims to be read-only, and this is environment
	scratch bool
	fixed   bool // part of the package: nothing in it can be changed
}

// Tree is a view of files, which may be made when it is first asked for.
type Tree interface{ Overlay() *volume.Overlay }

// SealedError is an operation on a volume before the request was delivered.
// The guest is stopped: what it read then would be frozen into its image.
type SealedError struct {
	Operation capabilities.Operation
	Path      string // guest path
}

// Error returns one line that names operation and path.
func (e *SealedError) Error() string {
	return fmt.Sprintf("volume touched before the request: %s of %q", e.Operation, e.Path)
}

// New returns the authority over the volume of that name, as the grant of the
// ledger gives it. The guest sees the tree at mount, an absolute path; the tree is
// asked for when it is first touched.
func New(name, mount string, t Tree, l *capabilities.Ledger) *Volume {
	g := l.Grant()
	look := g.Decide(capabilities.Attempt{Operation: capabilities.OpRead, Object: mount, Volume: name})
	return &Volume{
		name: name, mount: mount, from: t, ledger: l,
		visible: look.Decision == capabilities.Allow, claimed: g.Claim.ReadOnly,
	}
}

// Scratch returns the call's own temporary tree. It is no environment:
// writing to it is never judged, and a spent budget is ENOSPC and a denial.
func Scratch(mount string, t Tree, l *capabilities.Ledger) *Volume {
	return &Volume{name: "scratch", mount: mount, from: t, ledger: l, visible: true, scratch: true}
}

// Fixed returns the files of the guest's own package. They are no environment:
// reading them is never judged, in start-up code neither, and whatever would
// change one is EROFS and breaks no claim.
func Fixed(mount string, t Tree, l *capabilities.Ledger) *Volume {
	return &Volume{name: "package", mount: mount, from: t, ledger: l, visible: true, fixed: true}
}

// Sealed returns a volume that can be enumerated and nothing else: every
// operation on it is a [*SealedError].
func Sealed(name, mount string) *Volume {
	return &Volume{name: name, mount: mount}
}

// Name returns the name under which the volume was granted.
func (v *Volume) Name() string { return v.name }

// Mount returns the absolute guest path of the root.
func (v *Volume) Mount() string { return v.mount }

// Sealed reports whether the volume can be enumerated only.
func (v *Volume) Sealed() bool { return v.from == nil }

// Root returns a handle of the root directory.
func (v *Volume) Root() *Handle {
	return &Handle{volume: v, kind: volume.Dir, read: true}
}

// barred reports whether nothing of the volume may be looked at: it is sealed,
// or the law does not allow reads. No name in such a tree shows.
func (v *Volume) barred() bool { return v.Sealed() || !v.visible }

// refuse returns what an operation on a barred volume comes to, which the law
// says and records.
func (v *Volume) refuse(op capabilities.Operation, object string) error {
	if v.Sealed() {
		return &SealedError{Operation: op, Path: object}
	}
	if err := v.attempt(op, object); err != nil {
		return err
	}
	return capabilities.EACCES // the law allows nothing where looking is not allowed
}

// attempt has a change judged before it is made.
func (v *Volume) attempt(op capabilities.Operation, object string) error {
	return v.judge(capabilities.Attempt{Operation: op, Object: object})
}

func (v *Volume) judge(a capabilities.Attempt) error {
	if v.scratch {
		return nil
	}
	if v.fixed {
		return capabilities.EROFS
	}
	a.Volume = v.name
	return v.ledger.Attempt(a)
}

// translate turns an error of the tree into what the guest is told.
func (v *Volume) translate(err error, op capabilities.Operation, object string) error {
	if isEscape(err) {
		return v.escape(op, object)
	}
	if _, spent := errors.AsType[*volume.LimitError](err); spent && v.scratch {
		return v.ledger.Deny(capabilities.Denial{
			Capability: capabilities.CapScratch, Operation: capabilities.OpWrite,
			Object: v.mount, Errno: capabilities.ENOSPC,
		})
	}
	return err
}

func (v *Volume) escape(op capabilities.Operation, object string) error {
	return v.ledger.Attempt(capabilities.Attempt{Operation: op, Object: object, Volume: v.name, Escape: true})
}

// object returns the guest path of a node.
func (v *Volume) object(n *volume.Node) string {
	return path.Join(v.mount, v.tree.Path(n))
}

// place returns the guest path of a name that may not exist.
func (v *Volume) place(p volume.Place) string {
	if p.Node != nil {
		return v.object(p.Node)
	}
	return path.Join(v.mount, v.tree.Path(p.Parent), p.Name)
}

func isEscape(err error) bool { return errors.Is(err, volume.ErrEscape) }
