// Package regular reads files in folders that others write: where a file may be
// swapped for a pipe, a device, a link or something endless at any moment, also
// between a look at it and its opening. What is read is what was looked at, no
// call waits for the other end of a pipe, and each has a bound.
package regular

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Errors of files. Those of the file system are [*fs.PathError].
var (
	ErrIrregular = errors.New("not a regular file")
	ErrLink      = errors.New("a link or a special file")
	ErrTooLarge  = errors.New("too large")
)

var errChanges = errors.New("changes all the time")

// tries bounds how often a file is looked at anew because it was replaced
// between the look and its opening, as editors do.
const tries = 8

// Folder opens a folder, wherever links lead.
func Folder(path string) (*os.Root, error) { return os.OpenRoot(asFolder(path)) }

// asFolder makes the opening of a path fail where it is no folder; without, that
// of a pipe waits for a writer.
func asFolder(path string) string { return path + string(filepath.Separator) + "." }

// Subfolder opens a folder below root. A link in its path is [ErrLink].
func Subfolder(root *os.Root, name string) (*os.Root, error) {
	at, err := root.OpenRoot(asFolder("."))
	if err != nil {
		return nil, err
	}
	for _, element := range elements(name) {
		next, err := enter(at, element)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func elements(name string) []string {
	if name = filepath.Clean(name); name == "." {
		return nil
	}
	return strings.Split(name, string(filepath.Separator))
}

// enter opens a folder by its name in another.
func enter(in *os.Root, name string) (*os.Root, error) {
	if !filepath.IsLocal(name) { // an element "..", which a path may have
		return nil, fmt.Errorf("%s: %w", name, fs.ErrInvalid)
	}
	for range tries {
		entry, err := in.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !entry.IsDir() {
			return nil, fmt.Errorf("%s: %w", name, ErrLink)
		}
		folder, err := in.OpenRoot(asFolder(name))
		if err != nil {
			return nil, err
		}
		if info, err := folder.Stat("."); err == nil && os.SameFile(entry, info) {
			return folder, nil
		}
		folder.Close()
	}
	return nil, fmt.Errorf("%s: %w", name, errChanges)
}

// Read returns the bytes of a regular file below root, which links in root may
// lead to, or an error that matches [ErrIrregular], or [ErrTooLarge] above most
// bytes.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	f, info, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, info, most)
}

// ReadNoLink is [Read] for a file whose path has no link, else [ErrLink]. It also
// returns the mode and owner of the file that was read.
func ReadNoLink(root *os.Root, name string, most int64) ([]byte, fs.FileInfo, error) {
	dir, base := filepath.Split(name)
	folder, err := Subfolder(root, dir)
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	for range tries {
		entry, err := folder.Lstat(base)
		if err != nil {
			return nil, nil, err
		}
		if !entry.Mode().IsRegular() {
			return nil, nil, ErrLink
		}
		f, info, err := open(folder, base)
		if err != nil {
			return nil, nil, err
		}
		if !os.SameFile(entry, info) {
			f.Close()
			continue
		}
		b, err := readAll(f, info, most)
		return b, info, errors.Join(err, f.Close())
	}
	return nil, nil, errChanges
}

// open opens a file and looks at what it has opened.
func open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrIrregular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func readAll(f *os.File, info fs.FileInfo, most int64) ([]byte, error) {
	if info.Size() > most {
		return nil, TooLarge(most)
	}
	// As large as the file is said to be, and room to see its end: no second buffer.
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, TooLarge(most)
	}
	return b.Bytes(), nil
}

// TooLarge returns the error of what has more than most bytes.
func TooLarge(most int64) error { return &sizeError{most} }

type sizeError struct{ most int64 }

func (e *sizeError) Error() string {
	if e.most < 1<<20 {
		return fmt.Sprintf("larger than %d bytes", e.most)
	}
	return fmt.Sprintf("larger than %d MiB", e.most>>20)
}

func (e *sizeError) Is(target error) bool { return target == ErrTooLarge }
