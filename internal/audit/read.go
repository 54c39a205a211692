package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// Read hands each wanted record of a state folder's log to each, oldest first.
// It returns how many torn records it skipped: what a crash tore off is not
// JSON. A log that is not there yet has no records.
func Read(state string, f Filter, each func(Record) error) (skipped int, err error) {
	file, err := os.Open(filepath.Join(state, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	r := reader{file: file, filter: f, each: each}
	if err := r.lines(); err != nil {
		return r.skipped, err
	}
	if len(r.rest) > 0 {
		r.skipped++
	}
	return r.skipped, nil
}

// Follow is Read that goes on with what is written later, until ctx ends. Its
// end is no error.
func Follow(ctx context.Context, state string, f Filter, each func(Record) error) (skipped int, err error) {
	r := reader{filter: f, each: each}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if r.file == nil {
			file, err := os.Open(filepath.Join(state, FileName))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return r.skipped, fmt.Errorf("audit log: %w", err)
			}
			if err == nil {
				defer file.Close()
				r.file = file
			}
		}
		if r.file != nil {
			if err := r.lines(); err != nil {
				return r.skipped, err
			}
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

// reader hands on the whole lines of a file that may grow.
type reader struct {
	file    *os.File
	filter  Filter
	each    func(Record) error
	rest    []byte // of a line whose end is not there yet
	skipped int
}

func (r *reader) lines() error {
	b := bufio.NewReader(r.file)
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
