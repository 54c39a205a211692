package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

const (
	// blobAge is how long a blob that nothing names is kept: a day, and what
	// blobRest may have saved.
	blobAge = 24*time.Hour + blobRest
	// blobRest is how long it is not written down again that somebody put a blob.
	blobRest = time.Hour
)

const mendBlob = "restore the file from a backup, or put the same content again"

// temporary is the folder of files that are being written.
const temporary = "tmp"

// blobFiles are blobs as files, ab/cdef… by their digest.
type blobFiles struct {
	disk disk
	path string
}

func blobName(d store.Digest) (folder, file string) {
	s := d.String()
	return s[:2], s[:2] + "/" + s[2:]
}

// write makes a file durable. A file that is there is replaced, as a whole.
func (b *blobFiles) write(d store.Digest, data []byte) (err error) {
	folder, target := blobName(d)
	if err := b.disk.Mkdir(temporary); err != nil {
		return err
	}
	source := temporary + "/" + rand.Text()
	f, err := b.disk.Create(source)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = b.place(source, folder, target)
	}
	if err != nil {
		_ = b.disk.Remove(source) // or Prune does
	}
	return err
}

func (b *blobFiles) place(source, folder, target string) error {
	if err := b.disk.Mkdir(folder); err != nil {
		return err
	}
	if err := b.disk.Rename(source, target); err != nil {
		return err
	}
	// Also the folder's own name: whoever made it may not have come to that.
	return errors.Join(b.disk.SyncFolder(folder), b.disk.SyncFolder("."))
}

// read returns what a file has, or [store.ErrGone].
func (b *blobFiles) read(d store.Digest) ([]byte, error) {
	_, target := blobName(d)
	f, err := b.disk.Open(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %v: %w", d, store.ErrGone)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, store.MaxBlob+1))
	return data, errors.Join(err, f.Close())
}

// Blob returns a blob. One that the disk changed is a [DamagedError].
func (s *Store) Blob(ctx context.Context, d store.Digest) ([]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	data, err := s.blobs.read(d)
	if err != nil {
		return nil, err
	}
	if got := store.Digest(sha256.Sum256(data)); got != d {
		_, file := blobName(d)
		return nil, &DamagedError{Path: filepath.Join(s.blobs.path, filepath.FromSlash(file)), Mend: mendBlob, Err: errors.New("content has another digest")}
	}
	return data, nil
}

// PutBlob keeps data for a day at least, or as long as a value names it.
func (s *Store) PutBlob(ctx context.Context, data []byte) (store.Digest, error) {
	if err := s.usable(ctx); err != nil {
		return store.Digest{}, err
	}
	if len(data) > store.MaxBlob {
		return store.Digest{}, fmt.Errorf("blob of %d bytes: %w", len(data), store.ErrTooLarge)
	}
	d := store.Digest(sha256.Sum256(data))
	at, err := s.put(ctx, d)
	if err != nil {
		return store.Digest{}, err
	}
	kept := false
	if at != 0 {
		have, err := s.blobs.read(d)
		kept = err == nil && bytes.Equal(have, data)
	}
	if kept && time.Since(time.Unix(0, at)) < blobRest {
		return d, nil
	}
	for !kept {
		if err := s.blobs.write(d, data); err != nil {
			return store.Digest{}, fmt.Errorf("blob %v: %w", d, err)
		}
		if kept, err = s.register(ctx, d, len(data)); err != nil {
			return store.Digest{}, err
		}
		if kept {
			return d, nil
		}
	}
	if kept, err = s.register(ctx, d, len(data)); err == nil && !kept {
		return s.PutBlob(ctx, data) // it was collected in between
	}
	return d, err
}

// put returns when a blob was put for the last time, or 0.
func (s *Store) put(ctx context.Context, d store.Digest) (at int64, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.row("SELECT at FROM blobs WHERE digest = ?", func(r *sqlite3.Stmt) { at = r.ColumnInt64(0) }, d[:])
	})
	return at, err
}

// register writes down that a blob was put. It tells whether the file is there:
// files are removed by who has the turn to write, as this one has.
func (s *Store) register(ctx context.Context, d store.Digest, size int) (there bool, err error) {
	_, file := blobName(d)
	err = s.queue.do(ctx, func(g *group) error {
		if _, err := s.blobs.disk.Stat(file); err != nil {
			there = false
			if errors.Is(err, fs.ErrNotExist) {
				return refuse(nil)
			}
			return refuse(err)
		}
		there, g.changed = true, true
		return g.c.exec("INSERT INTO blobs (digest, size, at) VALUES (?, ?, ?) ON CONFLICT (digest) DO UPDATE SET at = excluded.at",
			d[:], size, g.now.UnixNano())
	})
	return there, err
}
