package volume

// STUB: the signatures that other packages compile against. Replace each with its implementation.

import (
	"errors"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Options of an [Overlay]. The zero value allows no write.
type Options struct {
	Budget *Budget          // what may be written, shared by the volumes of a call; nil: nothing
	Now    func() time.Time // the call's clock, for the times of what it writes; nil: time.Now
}

// Limit is a budget of a call that ran out.
type LimitError struct{ Resource string } // "writes" (bytes) or "files"

func (e *LimitError) Error() string { return e.Resource + " limit reached" }

// Budget is how much a call may hold in overlays: bytes and changed files.
// The zero value allows nothing. Safe for concurrent use.
type Budget struct{ Bytes, Files int64 }

// Place is where a path leads: a name in a directory, and the node there, nil if there is none.
type Place struct {
	Parent *Node
	Name   string
	Node   *Node
}

type (
	Node    struct{}
	Overlay struct{}
)

var errStub = errors.New("stub")

// New returns a view of base in which nothing is changed. base nil is an empty tree.
func New(base Base, o Options) *Overlay { return &Overlay{} }

// Root returns the root directory.
func (o *Overlay) Root() *Node { return nil }

// Path returns the slash path of a node below the root, "." for the root; of a removed node its last path.
func (o *Overlay) Path(n *Node) string { return "" }

// Walk resolves a path from a directory, link by link (at most 40). The last component is followed only if follow is
// set. A trailing slash demands a directory. Errors: ENOENT for a missing parent (a missing last component is no error: Node is nil), ENOTDIR, ELOOP, ENAMETOOLONG,
// EILSEQ, EINVAL (empty path, NUL), or an error matching ErrEscape for absolute paths, ".." above the root and links that leave.
func (o *Overlay) Walk(dir *Node, path string, follow bool) (Place, error) { return Place{}, errStub }

func (o *Overlay) Info(n *Node) (Info, error)       { return Info{}, errStub }
func (o *Overlay) List(n *Node) ([]Entry, error)    { return nil, errStub } // sorted by name
func (o *Overlay) Readlink(n *Node) (string, error) { return "", errStub }

// Open retains the node: its content stays readable after removal, until Release. Special files: EACCES.
func (o *Overlay) Open(n *Node) error { return errStub }
func (o *Overlay) Release(n *Node)    {}

func (o *Overlay) ReadAt(n *Node, p []byte, off int64) (int, error)  { return 0, errStub } // io.EOF as io.ReaderAt
func (o *Overlay) WriteAt(n *Node, p []byte, off int64) (int, error) { return 0, errStub } // *LimitError
func (o *Overlay) Truncate(n *Node, size int64) error                { return errStub }
func (o *Overlay) SetTimes(n *Node, mtime time.Time) error           { return errStub }

func (o *Overlay) Create(p Place) (*Node, error) { return nil, errStub } // a regular file, mode 0644; EEXIST, *LimitError
func (o *Overlay) Mkdir(p Place) error           { return errStub }
func (o *Overlay) Remove(p Place) error          { return errStub } // file, link, or empty directory (ENOTEMPTY); root: EBUSY
func (o *Overlay) Rename(from, to Place) error   { return errStub } // POSIX rename; EINVAL into itself, EISDIR, ENOTDIR, ENOTEMPTY

// Effects returns what the call read and what it would leave, reads first, sorted by path. mount is prefixed to paths.
func (o *Overlay) Effects(mount string) []capabilities.Effect { return nil }

// Change returns the difference from the base, with guards for all that was read or replaced.
func (o *Overlay) Change() (*Change, error) { return nil, errStub }

// Close releases the base files that the overlay holds open. It does not change the base.
func (o *Overlay) Close() error { return nil }

// OpenDir opens a host folder as a volume. Links in it are never followed out of it (os.Root).
func OpenDir(dir string) (*HostDir, error) { return nil, errStub }

// HostDir implements Store over os.Root.
type HostDir struct{}
