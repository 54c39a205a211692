package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// collect removes blobs that nobody put lately and no value names. Their files
// go before their rows: a blob without its file is written anew when it is put,
// and is never named before that.
func (s *Store) collect(now time.Time) func(*group) (bool, error) {
	return func(g *group) (bool, error) {
		var old []store.Digest
		err := g.c.rows("SELECT digest FROM blobs b WHERE at <= ? AND NOT EXISTS (SELECT 1 FROM refs r WHERE r.digest = b.digest) LIMIT ?",
			func(r *sqlite3.Stmt) bool {
				old = append(old, store.Digest(r.ColumnRawBlob(0)))
				return true
			}, now.Add(-blobAge).UnixNano(), pruneStep)
		if err != nil {
			return false, err
		}
		for _, d := range old {
			_, file := blobName(d)
			if err := s.blobs.disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			g.changed = true
			if err := g.c.exec("DELETE FROM blobs WHERE digest = ?", d[:]); err != nil {
				return false, err
			}
		}
		return len(old) == pruneStep, nil
	}
}

// sweep removes files that a process left which was killed while it put a blob,
// once a day. Files have the times of the system's clock.
func (s *Store) sweep(ctx context.Context, now time.Time) error {
	if system := time.Now(); system.Before(now) {
		now = system
	}
	s.swept.Lock()
	defer s.swept.Unlock()
	if now.Sub(s.swept.at).Abs() < 24*time.Hour {
		return nil
	}
	folders, err := s.blobs.disk.List(".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if folder != temporary && len(folder) != 2 {
			continue
		}
		if err := s.sweepFolder(ctx, folder, now.Add(-blobAge)); err != nil {
			return err
		}
	}
	s.swept.at = now
	return nil
}

func (s *Store) sweepFolder(ctx context.Context, folder string, before time.Time) error {
	names, err := s.blobs.disk.List(folder)
	if err != nil {
		return err
	}
	var old []string
	for _, n := range names {
		if info, err := s.blobs.disk.Stat(folder + "/" + n); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			old = append(old, n)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return s.steps(ctx, func(g *group) (bool, error) {
		n := min(len(old), pruneStep)
		for _, name := range old[:n] {
			if err := s.removeStray(g, folder, name, before); err != nil {
				return false, err
			}
		}
		old = old[n:]
		return len(old) > 0, nil
	})
}

// removeStray removes a file that is no blob, or not yet and was not for long.
func (s *Store) removeStray(g *group, folder, file string, before time.Time) error {
	path := folder + "/" + file
	info, err := s.blobs.disk.Stat(path)
	if err != nil || !info.ModTime().Before(before) {
		return nil // gone, or written again
	}
	var d store.Digest
	if folder != temporary {
		if d.UnmarshalText([]byte(folder+file)) != nil {
			return nil // not a name that the store gives
		}
		known := false
		err := g.c.row("SELECT 1 FROM blobs WHERE digest = ?", func(*sqlite3.Stmt) { known = true }, d[:])
		if err != nil || known {
			return err
		}
	}
	return s.blobs.disk.Remove(path)
}
