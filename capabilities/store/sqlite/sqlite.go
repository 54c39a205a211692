// Package sqlite is the store of one machine: a database and a folder of blobs
// beside it.
//
// Several processes can share a folder. Commits that wait for the disk at the
// same time are written together and synced once. The folder has to be on a local
// disk: file systems of the network have neither the locks nor the shared memory
// that the engine needs.
package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Names in the folder of a store.
const (
	fileName   = "store.db"
	blobFolder = "blobs"
)

// Options are where a store is and what it may use.
type Options struct {
	// Folder is where the store lives: store.db and blobs. It is made, for its owner
	// only, where it does not exist.
	Folder string
	// Readers is how many reads run at the same time; 0: 4. Each one takes some
	// megabytes of memory.
	Readers int
}

// Store is a [store.Store] in a folder.
type Store struct {
	path  string // of the database
	uri   string
	blobs *blobFiles

	readers *pool
	queue   *queue
	chain   chain
	spaces  spaceIDs

	closing sync.Once
	closed  chan struct{}
	ended   error

	swept struct {
		sync.Mutex
		at time.Time
	}
}

var _ store.Store = (*Store)(nil)

// Open opens the store in a folder, or makes it. It waits for other processes
// that open or mend it.
func Open(ctx context.Context, o Options) (*Store, error) { return open(ctx, o, "", osDisk) }

// open takes the name of the engine's view of the disk, and the disk of the blobs.
func open(ctx context.Context, o Options, vfs string, mount func(folder string) (disk, error)) (_ *Store, err error) {
	if o.Folder == "" {
		return nil, errors.New("store has no folder")
	}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("store folder: %w", err)
	}
	s := &Store{path: filepath.Join(folder, fileName), closed: make(chan struct{})}
	s.uri = uriOf(s.path, vfs)
	if err := s.prepare(folder); err != nil {
		return nil, fmt.Errorf("store %s: %w", s.path, err)
	}
	writer, err := s.openWriter(ctx)
	if err != nil {
		return nil, s.told(ctx, err)
	}
	d, err := mount(filepath.Join(folder, blobFolder))
	if err != nil {
		_ = writer.close()
		return nil, fmt.Errorf("store blobs: %w", err)
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	s.blobs = &blobFiles{disk: d, path: filepath.Join(folder, blobFolder)}
	s.readers = newPool(o.Readers, s.openReader)
	s.chain = chain{writer: rand.Text()}
	s.queue = newQueue(s, writer)
	return s, nil
}

// prepare makes the folders and an empty file that only the owner can read: the
// engine would make one that the umask decides on.
func (s *Store) prepare(folder string) error {
	if err := os.MkdirAll(filepath.Join(folder, blobFolder), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncFolder(folder))
}

// ownersOnly closes a file to others, where the system has it as a file.
func ownersOnly(path string) error {
	if err := os.Chmod(path, 0o600); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// uriOf names the file, and lets the engine give the files beside it the same mode.
func uriOf(path, vfs string) string {
	query := "modeof=" + strings.ReplaceAll(url.QueryEscape(path), "+", "%20") // the engine takes a plus for itself
	if vfs != "" {
		query += "&vfs=" + vfs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive's letter
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: query}
	return u.String()
}

func (s *Store) openWriter(ctx context.Context) (*conn, error) {
	for {
		c, err := openConn(s.uri, sqlite3.OPEN_READWRITE, "busy_timeout = 1000", "synchronous = FULL", "foreign_keys = ON",
			"trusted_schema = OFF", "cell_size_check = ON", "cache_size = -8192")
		if err == nil {
			if err = s.initialise(c); err == nil {
				err = ownersOnly(s.path + "-shm") // modeof is not for this one
			}
			if err == nil {
				return c, nil
			}
			_ = c.close()
		}
		if !busy(err) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		pause()
	}
}

func (s *Store) openReader() (*conn, error) {
	return openConn(s.uri, sqlite3.OPEN_READONLY, "busy_timeout = 60000", "trusted_schema = OFF", "cell_size_check = ON")
}

// Close ends the store. Commits that are being written are completed; those that
// wait are not done and return [store.ErrClosed].
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.ended = errors.Join(s.queue.close(), s.readers.close(), s.blobs.disk.Close())
	})
	return s.ended
}

// usable tells whether the store can be used on behalf of ctx.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
		return nil
	}
}

// spaceIDs are the numbers of spaces. They never change once they are durable.
type spaceIDs struct{ sync.Map }

const sqlSpace = "SELECT id FROM spaces WHERE principal = ? AND package = ? AND area = ?"

// find returns the number of a space as c sees it, or 0. Numbers that are
// durable are remembered.
func (m *spaceIDs) find(c *conn, sp store.Space, durable bool) (int64, error) {
	if id, ok := m.Load(sp); ok {
		return id.(int64), nil
	}
	var id int64
	err := c.row(sqlSpace, func(r *sqlite3.Stmt) { id = r.ColumnInt64(0) }, sp.Principal, sp.Package, sp.Area)
	if err == nil && id != 0 && durable {
		m.Store(sp, id)
	}
	return id, err
}
