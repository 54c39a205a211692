package trust

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

const (
	lockName    = ".lock"
	newPrefix   = ".new-"
	recordExt   = ".json"
	lockTimeout = 30 * time.Second // a holder only writes one small file
	lockPoll    = 5 * time.Millisecond
)

// RecordError is a record that cannot be used, and where it is. A package is
// never trusted anew because its record cannot be read.
type RecordError struct {
	File string
	Err  error
}

// Error returns one line with the file and the mend.
func (e *RecordError) Error() string {
	return fmt.Sprintf("trust record %s: %v; restore it, or remove it and approve the package again", term.Line(e.File), e.Err)
}

// Unwrap returns what is wrong.
func (e *RecordError) Unwrap() error { return e.Err }

var errWritable = errors.New("everybody may write it, chmod go-w")

// fault names the store in an error.
func (s *Store) fault(err error) error {
	return fmt.Errorf("trust store %s: %w", term.Line(s.dir), pathless(err))
}

func (s *Store) file(name string) string { return filepath.Join(s.dir, name+recordExt) }

// read returns the record of a name; errUnknown where there is none.
func (s *Store) read(name string) (Record, error) {
	file := s.file(name)
	bad := func(err error) (Record, error) { return Record{}, &RecordError{File: file, Err: pathless(err)} }
	if info, err := os.Stat(s.dir); err == nil && worldWritable(info) {
		return Record{}, s.fault(errWritable)
	}
	b, err := readRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, errUnknown
	}
	if err != nil {
		return bad(err)
	}
	r, err := decode(b)
	if err != nil {
		return bad(err)
	}
	if r.Name != name {
		return bad(fmt.Errorf("is the record of %s", r.Name))
	}
	return r, nil
}

// readRegular returns the bytes of a regular file that only its owner and its
// group can write.
func readRegular(file string) ([]byte, error) {
	dir, name := filepath.Split(file)
	root, err := regular.Folder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	b, info, err := regular.ReadNoLink(root, name, maxRecord)
	if err != nil {
		return nil, err
	}
	if worldWritable(info) {
		return nil, errWritable
	}
	return b, nil
}

// worldWritable is false on Windows, where mode bits say nothing about others.
func worldWritable(info fs.FileInfo) bool {
	return goruntime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// names returns the names that have a record, sorted.
func (s *Store) names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.fault(err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordExt)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if !tool.ValidPackageName(name) {
			return nil, &RecordError{File: filepath.Join(s.dir, e.Name()), Err: errors.New("not the name of a package")}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// lock makes the store's folder and takes its lock, which other processes and
// other goroutines wait for.
func (s *Store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, s.fault(err)
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return nil, s.fault(err)
	}
	if worldWritable(info) {
		return nil, s.fault(errWritable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	l := flock.New(filepath.Join(s.dir, lockName), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return nil, s.fault(fmt.Errorf("lock: %w; does another sandboxd hang?", pathless(err)))
	}
	// Closing the descriptor gives the lock back, also where unlocking fails.
	return func() { l.Close() }, nil
}

// write replaces the record of a name, whole or not at all. The caller holds the
// lock.
func (s *Store) write(r Record) error {
	fault := func(err error) error {
		return fmt.Errorf("trust record %s: %w", term.Line(s.file(r.Name)), pathless(err))
	}
	b, err := r.encode()
	if err != nil {
		return fault(err)
	}
	// What does not read back would refuse the package for ever.
	if back, err := decode(b); err != nil || !slices.EqualFunc(back.Tools, r.Tools, ToolPin.equal) {
		return fault(fmt.Errorf("%w: it does not read back as it is", ErrCandidate))
	}
	if err := s.sweep(r.Name); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, newPrefix)
	if err != nil {
		return fault(err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = s.replace(f.Name(), s.file(r.Name))
	}
	if err != nil {
		os.Remove(f.Name())
		return fault(err)
	}
	return nil
}

// sweep removes what killed processes left, and refuses a new name where there
// are too many.
func (s *Store) sweep(name string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return s.fault(err)
	}
	others := 0
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), newPrefix):
			os.Remove(filepath.Join(s.dir, e.Name()))
		case filepath.Ext(e.Name()) == recordExt && e.Name() != name+recordExt:
			others++
		}
	}
	if others >= maxRecords {
		return fmt.Errorf("%w; remove records that are no longer used from %s", ErrFull, term.Line(s.dir))
	}
	return nil
}

// replaceFile renames a file over another, and makes that last.
func replaceFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if goruntime.GOOS == "windows" { // where folders cannot be synchronised
		return nil
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// pathless drops the operation and the path from an error, which the message
// around it has already.
func pathless(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
