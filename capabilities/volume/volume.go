// Package volume gives one call its private, writable view of a tree of files
// and turns what it did into a change that can be judged, stored and applied.
//
// It is mechanism without policy: POSIX semantics, budgets, and confinement to
// the tree. Who may do what is decided by package files.
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

// Store is a volume that changes can be applied to.
type Store interface {
	Base
	// Apply makes the change durable as a whole or not at all. It returns
	// [ErrConflict] when a guard of the change no longer holds.
	Apply(ctx context.Context, c *Change) error
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
	Digest string `json:"digest"` // hex SHA-256 over names and kinds
}

// Action is what a step does.
type Action string

// The actions of steps. Steps are ordered: removals deepest first, then
// directories parents first, then files and links, then times.
const (
	ActRemove Action = "remove" // a file, link or directory of the base
	ActMkdir  Action = "mkdir"
	ActPut    Action = "put"  // a file with new content, or a base file moved
	ActLink   Action = "link" // a link of the base moved (guests make none), or one made anew if Base is empty
	ActTimes  Action = "times"
)

// Step is one action on one path. For [ActPut] the content is Base's first
// Keep bytes, overlaid by Extents, filled with zeros to Size.
type Step struct {
	Action  Action      `json:"action"`
	Path    string      `json:"path"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	ModTime time.Time   `json:"modTime,omitzero"`
	Base    string      `json:"base,omitempty"` // path in the base, empty for none
	Keep    int64       `json:"keep,omitempty"`
	Extents []Extent    `json:"extents,omitempty"`
	Size    int64       `json:"size,omitempty"`
	Target  string      `json:"target,omitempty"` // of a link
}

// Extent is a run of bytes in a file.
type Extent struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}
