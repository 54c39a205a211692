// Package audit keeps the log of what tools did: one line of JSON a record, in
// <state>/log.jsonl. A file that is full is renamed to log.1.jsonl, that one to
// log.2.jsonl, and so on; what goes beyond the number of files to keep is
// deleted. Several processes share a log: each appends a record with one write,
// under the lock of log.lock, and looks first whether another has renamed the
// file. Only the host writes it, guests cannot reach it.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

// FileName is the name in the state folder of the file that is written. Older
// ones have the names log.1.jsonl (the newest of them), log.2.jsonl, …
const FileName = "log.jsonl"

// The defaults of [Options], and the most files that can be kept.
const (
	DefaultMaxSize = 64 << 20
	DefaultKeep    = 8
	MaxKeep        = 99
)

// ErrOptions is matched by the error of [Open] for options that are out of
// bounds.
var ErrOptions = errors.New("audit log options out of bounds")

// Options bound a log. Processes that share a log should agree on them: each
// rotates by its own.
type Options struct {
	// MaxSize is how large a file grows, in bytes. A record that is larger has a
	// file of its own. 0: [DefaultMaxSize].
	MaxSize int64
	// Keep is how many older files are kept, at most [MaxKeep]. 0: [DefaultKeep].
	Keep int
}

// Log is an open log. It is safe for concurrent use.
type Log struct {
	folder  string
	maxSize int64
	keep    int
	onError func(error)

	mu    sync.Mutex // protects all below
	lock  lock
	file  *os.File
	lost  int
	stuck bool // the last rotation failed, which was said
}

// Open opens the log of a state folder for appending, both made when they are
// missing and readable by the user only.
func Open(state string, o Options) (*Log, error) {
	if o.MaxSize < 0 || o.Keep < 0 || o.Keep > MaxKeep {
		return nil, fmt.Errorf("%w: a file of %d bytes, %d older files: at least 0, at most %d files", ErrOptions, o.MaxSize, o.Keep, MaxKeep)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	l := &Log{folder: state, maxSize: o.MaxSize, keep: o.Keep, lock: newLock(state)}
	if l.maxSize == 0 {
		l.maxSize = DefaultMaxSize
	}
	if l.keep == 0 {
		l.keep = DefaultKeep
	}
	var err error
	if l.file, err = openAppend(l.path(0)); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return l, nil
}

func (l *Log) path(age int) string { return filepath.Join(l.folder, fileName(age)) }

// fileName returns the name of the file that was rotated age times.
func fileName(age int) string {
	if age == 0 {
		return FileName
	}
	return fmt.Sprintf("log.%d.jsonl", age)
}

// OnError sets the function that learns of records that could not be written,
// and of files that could not be rotated. Set it before the log is used. A lost
// record does not stop the call that it is of.
func (l *Log) OnError(f func(error)) { l.onError = f }

// Lost returns how many records could not be written.
func (l *Log) Lost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Close closes the log; what is written after it is lost.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// Observer returns the observer that writes an engine's records. Violations and
// denials are in the file when the engine goes on.
func (l *Log) Observer() runtime.Observer {
	return runtime.Observer{
		Violation: func(c runtime.CallInfo, v capabilities.Violation) { l.write(violationRecord(c, v, time.Now())) },
		Denial:    func(c runtime.CallInfo, d capabilities.Denial) { l.write(denialRecord(c, d, time.Now())) },
		CallEnd:   func(c runtime.CallInfo, r *runtime.Result) { l.write(callRecord(c, r, time.Now())) },
	}
}

// LoadFailed writes the record of a package that cannot run.
func (l *Log) LoadFailed(err *runtime.LoadError) { l.write(loadRecord(err, time.Now())) }

// PackageAdmitted writes the record of a package that may run from now on: its
// served name, by what it was admitted ("first use", "approve", "trust
// changes"), and the digest of its module.
func (l *Log) PackageAdmitted(name, by, moduleDigest string) {
	l.write(Record{Time: time.Now().UTC(), Type: TypeApprove, Package: name, By: by, ModuleDigest: moduleDigest})
}

// ConfigReloaded writes the record of a configuration that was read again. With
// an error it was refused and the one before stays.
func (l *Log) ConfigReloaded(err error) { l.write(configRecord(err, time.Now())) }

func (l *Log) write(r Record) {
	var full error
	b, err := json.Marshal(r)
	if err == nil {
		full, err = l.append(append(term.JSON(b), '\n'))
	}
	if full != nil {
		l.report(fmt.Errorf("audit log is not rotated and grows on: %w", full))
	}
	if err != nil {
		l.report(fmt.Errorf("audit record (%s) is lost: %w", r.subject(), err))
	}
}

func (l *Log) report(err error) {
	if l.onError != nil {
		l.onError(err)
	}
}

// append writes a line into the current file. A lock that is not to be had in
// time does not lose the record, it is appended without one: what may happen
// then is a line that is torn or comes late to those who follow. full says why a
// file could not be rotated, once until one can be.
func (l *Log) append(line []byte) (full, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if err != nil {
			l.lost++
		}
	}()
	locked := l.lock.acquire()
	if locked {
		defer l.lock.release()
	}
	size, err := l.current()
	if err != nil {
		return nil, err
	}
	if locked && size > 0 && size+int64(len(line)) > l.maxSize {
		full = l.rotate()
		if size, err = l.current(); err != nil {
			return full, err
		}
	}
	torn, err := endsTorn(l.file, size)
	if err != nil {
		return full, err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	_, err = l.file.Write(line)
	return full, err
}

// current makes the open file the one that has the log's name, and returns its
// size in bytes.
func (l *Log) current() (int64, error) {
	have, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	named, err := os.Stat(l.path(0))
	switch {
	case err == nil && os.SameFile(have, named):
		return have.Size(), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	f, err := openAppend(l.path(0))
	if err != nil {
		return 0, err
	}
	if have, err = f.Stat(); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	l.file.Close() // what was written is in the system's hands: a close that fails loses nothing
	l.file = f
	return have.Size(), nil
}

// endsTorn reports whether the last line has no end, as the crash of any
// process that shares the log leaves it.
func endsTorn(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}
