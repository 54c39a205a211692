package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
)

// ErrIrregular: the path of a [FileSink] is no regular file.
var ErrIrregular = errors.New("not a regular file")

// FileSink appends messages to a file, a line of JSON each. A message that is
// delivered again is there twice, with the same key. A line that a crash cut off
// stays, and the next one begins behind it.
type FileSink struct {
	path string
	mu   sync.Mutex
}

// Line is a line of a [FileSink]: the message and when it was delivered.
type Line struct {
	Time time.Time `json:"time"`
	outbox.Message
}

// NewFileSink returns a sink that appends to the file of that path, which is made
// where there is none, for its owner alone.
func NewFileSink(path string) *FileSink { return &FileSink{path: path} }

// Deliver appends a message. It is on the disk when Deliver returns nil.
func (s *FileSink) Deliver(ctx context.Context, m outbox.Message) error {
	line, err := json.Marshal(Line{time.Now().Round(0).UTC(), m})
	if err != nil {
		return &Permanent{err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	return errors.Join(appendLine(f, line), f.Close())
}

// open opens the file, or makes it.
func (s *FileSink) open() (*os.File, error) {
	i, err := os.Stat(s.path)
	switch {
	case err == nil && !i.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", s.path, ErrIrregular)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, openErr := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if openErr != nil {
		return nil, openErr
	}
	if err != nil {
		if err := syncFolder(filepath.Dir(s.path)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// appendLine writes a line by one write, so that those of several processes do
// not mix.
func appendLine(f *os.File, line []byte) error {
	cut, err := cutOff(f)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if cut {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// cutOff reports whether a file ends within a line. One that grows is being
// written to by another process; where that takes very long, an empty line comes
// of it.
func cutOff(f *os.File) (bool, error) {
	const pause = 50 * time.Millisecond
	for before := int64(-1); ; {
		i, err := f.Stat()
		if err != nil || i.Size() == 0 {
			return false, err
		}
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, i.Size()-1); err != nil {
			return false, err
		}
		if last[0] == '\n' || i.Size() == before {
			return last[0] != '\n', nil
		}
		before = i.Size()
		time.Sleep(pause)
	}
}

// syncFolder makes a new name in a folder durable, where systems need that.
func syncFolder(path string) error {
	if goruntime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
