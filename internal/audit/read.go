package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Filter says which records are wanted. The zero Filter wants all.
type Filter struct {
	Violations bool   // only violations
	Tool       string // only this tool's; empty: all
	CallID     string // only this call's; empty: all
}

func (f Filter) wants(r Record) bool {
	return (!f.Violations || r.Type == TypeViolation) && (f.Tool == "" || r.Tool == f.Tool) && (f.CallID == "" || r.CallID == f.CallID)
}

// pollInterval is how often Follow looks for new records.
const pollInterval = 200 * time.Millisecond

// Read hands each wanted record of a state folder's log to each, oldest first,
// those of rotated files too. It returns how many torn records it skipped: what
// a crash tore off is not JSON. A log that is not there yet has no records.
func Read(state string, f Filter, each func(Record) error) (skipped int, err error) {
	r := reader{filter: f, each: each}
	files, err := openFiles(state)
	if err != nil {
		return 0, err
	}
	defer files.close()
	for _, file := range files {
		if err := r.whole(file); err != nil {
			return r.skipped, err
		}
	}
	return r.skipped, nil
}

// Follow is Read that goes on with what is written later, also in files that are
// rotated meanwhile, until ctx ends. Its end is no error. Who falls behind by
// more files than are kept gets no records of those that are gone: then missed
// is called, before the next record is handed on. It is called too when just the
// files that had been read are gone: what is left does not tell these apart.
func Follow(ctx context.Context, state string, f Filter, each func(Record) error, missed func()) (skipped int, err error) {
	r := reader{filter: f, each: each, missed: missed}
	var read files // those that were read; the last one is being read
	defer func() { read.close() }()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if read, err = r.next(state, read); err != nil {
			return r.skipped, err
		}
		select {
		case <-ctx.Done():
			return r.skipped, nil
		case <-tick.C:
		}
	}
}

// recordStart begins every record: time is its first field, and a quote within
// a text is escaped.
const recordStart = `{"time":"`

// reader hands on the whole lines of files.
type reader struct {
	filter  Filter
	each    func(Record) error
	missed  func() // records are gone that were not read; only of those that follow
	rest    []byte // of a line whose end is not there yet
	skipped int
}

// next hands on what came since the given files were read, and returns the files
// that have now been read. Those that no longer belong to the log are closed.
func (r *reader) next(state string, read files) (files, error) {
	last := read.last()
	if last != nil && hasName(last, filepath.Join(state, FileName)) {
		return read, r.lines(last)
	}
	opened, err := openFiles(state)
	if err != nil {
		return read, err
	}
	now, unread := opened.since(read)
	if now.last() == last && last != nil {
		return now, r.lines(last) // renamed, and no other has its name yet
	}
	defer read.without(now).close()
	if last != nil {
		// It lost its name, so that no more is written to it.
		if err := r.whole(last); err != nil {
			return now, err
		}
		if !slices.Contains(now, last) && now.rotated(state) {
			r.missed()
		}
	}
	for _, file := range unread {
		handOn := r.whole
		if file == now.last() {
			handOn = r.lines
		}
		if err := handOn(file); err != nil {
			return now, err
		}
	}
	return now, nil
}

// whole reads a file to its end, of which no more comes.
func (r *reader) whole(file *os.File) error {
	if err := r.lines(file); err != nil {
		return err
	}
	if len(r.rest) == 0 {
		return nil
	}
	line := r.rest
	r.rest = nil
	return r.line(line)
}

func (r *reader) lines(file *os.File) error {
	b := bufio.NewReader(file)
	for {
		part, err := b.ReadBytes('\n')
		r.rest = append(r.rest, part...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		line := bytes.TrimSpace(r.rest)
		r.rest = nil
		if err := r.line(line); err != nil {
			return err
		}
	}
}

func (r *reader) line(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var rec Record
	if json.Unmarshal(b, &rec) != nil {
		r.skipped++
		// A record of another process may follow on the same line.
		rec = Record{}
		whole := bytes.LastIndex(b, []byte(recordStart))
		if whole <= 0 || json.Unmarshal(b[whole:], &rec) != nil {
			return nil
		}
	}
	if !r.filter.wants(rec) {
		return nil
	}
	return r.each(rec)
}
