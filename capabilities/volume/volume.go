// Package volume gives one call its private, writable view of a tree of files
// and turns what it did into a change that can be judged, stored and applied.
//
// It is mechanism without policy: POSIX semantics, budgets, and confinement to
// the tree. Who may do what is decided by package files.
//
// # What conflicts
//
// A change carries a guard for each path that the call looked at and for each
// directory that it listed. A file is the same while its kind, mode, size,
// modification time, status change time and inode are. The status change time
// counts because no program can set it: who puts the other times back is seen.
// A file that was changed just before it was looked at also has a digest of its
// content, because its times may not show a further change.
//
// There is one exception. When a change fails half way and is taken back, the
// files that it touched have another status change time though they are as
// before. The [HostDir] remembers that, and for it they are the same: the change
// can be tried again. Another process does not know, and sees a conflict.
//
// # What a call may hold
//
// A guest decides what an overlay remembers: all of that is charged to the call's
// [Budget], and given back when it is no longer held. What was seen of the base
// is held to the end. That a name is not there is remembered of paths that were
// seen and of no others; maps are made anew when most of their entries are gone.
//
// # Committed elsewhere
//
// A change of a folder can be committed by a transaction that knows nothing of
// files. It is staged, locked and checked; then its intent, which says what
// publishing will do, is committed with everything else of the call; then it is
// published. Whoever uses the folder next, in whatever process, finishes what was
// committed and not published: see [Intents], [HostDir.Settle], [HostDir.Resume].
//
//	Stage      the new files, synced; the stage, synced; the root, synced
//	Lock       what others committed is in place
//	Check      the guards; and what the host would refuse later
//	(commit)   the intent: from here on the change is made
//	Publish    what is taken away goes into the stage, which is synced before any
//	           directory that lost a name; new directories are made and synced before
//	           anything is put into them; files are renamed into place; times are set;
//	           all directories are synced; the stage gets another name; the root is
//	           synced
//	Done       the intent is no longer needed
//	Close      what is left of the stage is deleted
//
// So before the commit nothing of the change is in the folder, and all of its new
// content is on the disk; and when the stage's name has gone all of the change is
// on the disk. In between each operation tells by the stage whether it was done: a
// file is either there or at its path. A disk may lose, of what was not synced,
// any operation and not the ones before or after it; the tests say what else is
// taken for granted. On Windows directories cannot be synced: there the change
// survives a killed process, and power loss as far as the file system sees to that.
//
// What somebody else wrote between the commit and the publication, where the change
// belongs, is moved into the stage, and that stays, as ".sandboxd-kept-" and more.
// Others see a change half made for as long as it is published, and after a crash
// until it is resumed: only what comes through a HostDir waits.
//
// # What a killed process leaves
//
// Changes are made with the help of a stage, a folder in the volume's root
// whose name begins with ".sandboxd-". In it, names that begin with "n-" are new
// contents. When a change is done or taken back, its stage is named
// ".sandboxd-done-" and more, and deleted.
//
// A stage is filled before the folder is locked, and locked itself until it is
// deleted. The first change through a HostDir looks for stages that others left,
// which are not locked. It deletes those that are done or hold new contents only.
// The stage of a change that is committed elsewhere is named ".sandboxd-tx-" and
// more, and only its [Owner] knows whether it was; the one of a change that was is
// resumed first.
//
// A change that is committed by publishing it can be left half made. In its stage,
// names that begin with "o-" are files of the volume, and may be all that is left
// of them: the stage stays, and [HostDir.Abandoned] tells of it once. What was
// being changed has to be moved back by hand. Where folders cannot be locked a
// stage may be in use, and none is deleted.
package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Errors of a volume besides [capabilities.Errno].
var (
	// ErrConflict: what the call read or replaced has changed since.
	ErrConflict = errors.New("volume changed since the call read it")
	// ErrEscape: a path or a link leaves the volume.
	ErrEscape = errors.New("path leaves the volume")
	// ErrTorn: a change could neither be applied whole nor taken back. The error
	// tells both causes and matches neither: a conflict would invite running the
	// call again, on top of what it has left.
	ErrTorn = errors.New("volume left between two states")
)

// Kind is the type of a file.
type Kind uint8

// The kinds of files. Special files (devices, pipes, sockets) are listed but
// can neither be opened nor made.
const (
	File Kind = iota
	Dir
	Symlink
	Special
)

// Info describes a file as a guest may see it.
type Info struct {
	Kind    Kind
	Size    int64       // bytes; of a link: length of its target
	Mode    fs.FileMode // permission bits only
	ModTime time.Time
	Inode   uint64 // derived from the path, equal before and after commit
}

// Entry is one name in a directory.
type Entry struct {
	Name  string
	Kind  Kind
	Inode uint64
}

// Stamp identifies one version of a file in a base: when two stamps of a path
// are equal, nobody has replaced or changed the file in between.
// Of a directory only Kind and Mode count.
type Stamp struct {
	Exists  bool        `json:"exists"`
	Kind    Kind        `json:"kind,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Size    int64       `json:"size,omitempty"`
	ModTime time.Time   `json:"modTime,omitzero"`
	Changed time.Time   `json:"changed,omitzero"` // status change time, where the system has one
	Inode   uint64      `json:"inode,omitempty"`
	// Digest is the hex SHA-256 of the content, of a file that was changed so
	// shortly before it was stamped that its times cannot tell a further change.
	Digest string `json:"digest,omitempty"`
	// Version is that of the path in a store, of a volume that lives there; 0
	// elsewhere. Of a directory too: it is another one when it was made anew.
	Version uint64 `json:"version,omitempty"`
}

// Base is the committed state of a volume, for reading. Names are slash
// separated and relative, "." is the root; they are clean and pass through no
// link. Errors are of type [capabilities.Errno].
type Base interface {
	Lstat(name string) (Info, Stamp, error)
	ReadDir(name string) ([]Entry, error) // sorted by name
	Readlink(name string) (string, error)
	Open(name string) (Content, error) // regular files only
}

// Content reads a file of a base.
type Content interface {
	io.ReaderAt
	io.Closer
}

// Lister is a [Base] that says whether its listings are complete.
type Lister interface {
	// List is ReadDir. It also reports whether the directory has entries that
	// are not in the list because they cannot be shown.
	List(name string) (list []Entry, hidden bool, err error)
}

// Stepper is a [Base] that counts times in steps: a time that is set is cut to a
// multiple of the step, and an [Overlay] shows no other. Others count nanoseconds.
type Stepper interface {
	TimeStep() time.Duration
}

// Store is a volume that changes can be applied to.
type Store interface {
	Base
	// Apply locks the volume, checks the guards of the change and makes it
	// durable as a whole or not at all. It returns [ErrConflict] when a guard no
	// longer holds, and [ErrTorn].
	Apply(ctx context.Context, c *Change) error
}

// Locker is a [Store] that takes a change in steps, so that a commit to several
// volumes is one for others, and whole or not at all.
type Locker interface {
	Store
	// Stage prepares a change without keeping anybody out, and without being
	// seen. It returns EINVAL for a change that no overlay makes, [ErrConflict],
	// and why there is no room for the change. Who has staged closes.
	Stage(ctx context.Context, c *Change) (Staged, error)
	// Folder says where the volume is.
	Folder() Folder
}

// Staged is a change on its way into a [Locker]. It is for one goroutine.
type Staged interface {
	// Lock keeps all other changes out until Close. Who only reads shares the
	// lock. Who locks several volumes does so in the order of their folders.
	Lock(ctx context.Context) error
	// Check returns [ErrConflict] when a guard of the change no longer holds. It
	// changes nothing, and needs the lock.
	Check(ctx context.Context) error
	// Publish puts the change in place, durably, as a whole or not at all. It
	// needs the lock; guards that were not checked are. [ErrConflict], [ErrTorn].
	Publish(ctx context.Context) error
	// Undo takes back what Publish has put in place, or returns [ErrTorn].
	Undo() error
	// Close lets go, and deletes what was prepared or replaced.
	Close()
}

// Change is the difference that a call would leave in one volume. It is data:
// it survives encoding and can be applied by another process.
type Change struct {
	Guards   []Guard   `json:"guards"`
	Listings []Listing `json:"listings,omitempty"`
	Steps    []Step    `json:"steps"`
}

// Empty reports whether applying the change would do nothing.
func (c *Change) Empty() bool { return len(c.Steps) == 0 }

// Guard demands that a path still has the stamp that the call saw.
type Guard struct {
	Path  string `json:"path"`
	Stamp Stamp  `json:"stamp"`
}

// Listing demands that a directory still has the names that the call saw.
type Listing struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`           // hex SHA-256 over names and kinds
	Hidden bool   `json:"hidden,omitempty"` // whether there are entries that cannot be shown
}

// Action is what a step does.
type Action string

// The actions of steps. Steps are ordered: removals deepest first, then
// directories parents first, then files and links, then times.
const (
	ActRemove Action = "remove" // a file, link or directory of the base
	ActMkdir  Action = "mkdir"
	ActPut    Action = "put"  // a file with new content, or a base file moved
	ActLink   Action = "link" // a link of the base moved; none is ever made but by Overlay.Symlink
	ActTimes  Action = "times"
)

// Step is one action on one path. For [ActPut] the content is Base's first
// Keep bytes, overlaid by Extents, filled with zeros to Size.
type Step struct {
	Action  Action      `json:"action"`
	Path    string      `json:"path"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	ModTime time.Time   `json:"modTime,omitzero"`
	// Was is the time that the call saw, of [ActTimes] for a directory whose time
	// it did not set: it follows from the names that the call made or removed. Such
	// a step is no effect, and never the only one.
	Was     time.Time `json:"was,omitzero"`
	Base    string    `json:"base,omitempty"` // path in the base, empty for none; of mkdir: a directory that was moved
	Keep    int64     `json:"keep,omitempty"`
	Extents []Extent  `json:"extents,omitempty"`
	Size    int64     `json:"size,omitempty"`
	Target  string    `json:"target,omitempty"` // of a link

	putBack bool // a link that the host makes. A step that was decoded makes none
}

// Extent is a run of bytes in a file.
type Extent struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}
