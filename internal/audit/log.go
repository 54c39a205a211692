// Package audit keeps the log of what tools did: one line of JSON a record, in
// <state>/log.jsonl. The log is only appended to, a record with one write, so
// that several processes can share it. A record that follows what another
// process left unfinished begins on a line of its own; where the two come to
// stand on one line nevertheless, the reader takes them apart. Only the host
// writes it, guests cannot reach it.
package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

// FileName is the log's name in the state folder.
const FileName = "log.jsonl"

// Log is an open log. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	file    *os.File
	lost    int
	onError func(error)
}

// Open opens the log of a state folder for appending, both made when they are
// missing and readable by the user only.
func Open(state string) (*Log, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(state, FileName), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &Log{file: f}, nil
}

// endsTorn reports whether the last line has no end, as the crash of any
// process that shares the log leaves it.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// OnError sets the function that learns of records that could not be written.
// Set it before the log is used. A lost record does not stop the call that it
// is of.
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

func (l *Log) write(r Record) {
	if err := l.append(r); err != nil {
		l.mu.Lock()
		l.lost++
		l.mu.Unlock()
		if l.onError != nil {
			l.onError(fmt.Errorf("audit record (%s of %s, call %s) is lost: %w", r.Type, r.Package, r.CallID, err))
		}
	}
}

func (l *Log) append(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line := append(term.JSON(b), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	torn, err := endsTorn(l.file)
	if err != nil {
		return err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	_, err = l.file.Write(line)
	return err
}
