package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// files are open files of a log, oldest first.
type files []*os.File

// scans bounds how often openFiles looks again. Files would have to be rotated
// faster than they are opened for all of them to be needed.
const scans = 100

// openFiles opens the files of a log without its lock, which a reader may not be
// allowed to take. It begins with the newest: a rotation gives files higher
// numbers only, so that one that moves meanwhile is met again rather than
// missed, unless it moves out of reach. Then, and when more than one rotation
// meanwhile mixed up the order, it looks again.
func openFiles(state string) (files, error) {
	path := func(age int) string { return filepath.Join(state, fileName(age)) }
	for n := 1; ; n++ {
		before, err := oldest(state)
		if err != nil {
			return nil, err
		}
		found, err := scan(path, before+1)
		if err != nil {
			return nil, err
		}
		after, err := oldest(state)
		if err != nil {
			found.close()
			return nil, err
		}
		newest := found.last()
		inOrder := newest == nil || hasName(newest, path(0)) || hasName(newest, path(1))
		if n == scans || inOrder && after <= before+1 {
			return found, nil
		}
		found.close()
	}
}

// oldest returns the highest age of a file, at least 0.
func oldest(state string) (age int, err error) {
	entries, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	for _, e := range entries {
		middle, isLog := strings.CutPrefix(e.Name(), "log.")
		middle, isLines := strings.CutSuffix(middle, ".jsonl")
		n, err := strconv.Atoi(middle)
		if isLog && isLines && err == nil && n <= MaxKeep {
			age = max(age, n)
		}
	}
	return age, nil
}

func scan(path func(age int) string, reach int) (files, error) {
	var found files
	for age := range reach + 1 {
		f, err := openRead(path(age))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found.close()
			return nil, fmt.Errorf("audit log: %w", err)
		case found.same(f) != nil:
			f.Close()
		default:
			found = append(found, f)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// since returns these files with those that are in before replaced by the ones
// of before, which know how far they were read, and those that are not. While
// the files of before are open, no new file can have the identity of one of
// them.
func (l files) since(before files) (now, unread files) {
	for _, f := range l {
		if known := before.same(f); known != nil {
			f.Close()
			now = append(now, known)
			continue
		}
		now, unread = append(now, f), append(unread, f)
	}
	return now, unread
}

// without returns the files that are not in others.
func (l files) without(others files) files {
	return slices.DeleteFunc(slices.Clone(l), func(f *os.File) bool { return slices.Contains(others, f) })
}

// same returns the one that is the same file on the disk, or nil.
func (l files) same(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	for _, g := range l {
		if i, err := g.Stat(); err == nil && os.SameFile(i, info) {
			return g
		}
	}
	return nil
}

func (l files) last() *os.File {
	if len(l) == 0 {
		return nil
	}
	return l[len(l)-1]
}

// rotated reports whether any of them is an older file. A log that was taken away
// and begun anew has none.
func (l files) rotated(state string) bool {
	return len(l) > 1 || len(l) == 1 && !hasName(l[0], filepath.Join(state, FileName))
}

func (l files) close() {
	for _, f := range l {
		f.Close()
	}
}

// hasName reports whether a path leads to this file.
func hasName(f *os.File, path string) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(info, named)
}
