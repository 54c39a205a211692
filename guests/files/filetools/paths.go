package filetools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// windows reports whether a path begins with a drive of Windows: it must not become
// the name of a file here.
func windows(p string) bool {
	letter := len(p) >= 2 && p[1] == ':' && (p[0]|' ' >= 'a' && p[0]|' ' <= 'z')
	return letter && (len(p) == 2 || p[2] == '\\' || p[2] == '/')
}

// refusal is an error in the words of the original.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// validate returns where a path that a client gave leads to: within the volume, with
// no link left to follow. A file that is not there yet is where it would be.
func validate(asked string) (string, error) {
	if windows(asked) {
		return "", refuse("Access denied - Windows-style path received on a POSIX host: %s", asked)
	}
	p := asked
	if !path.IsAbs(p) {
		p = root + "/" + p
	}
	p = path.Clean(p)
	if !within(p) {
		return "", refuse("Access denied - path outside allowed directories: %s not in %s", p, root)
	}
	real, err := filepath.EvalSymlinks(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent(p)
	case err != nil:
		return "", failed("realpath", p, err)
	case !within(real):
		return "", refuse("Access denied - symlink target outside allowed directories: %s not in %s", real, root)
	}
	return real, nil
}

func within(p string) bool {
	return !strings.Contains(p, "\x00") && (p == root || strings.HasPrefix(p, root+"/"))
}

// absent returns where a path leads of which the end is not there.
func absent(p string) (string, error) {
	for at, rest := p, ""; ; {
		if _, err := os.Lstat(at); err == nil { // a link to nothing
			return "", refuse("Parent directory does not exist: %s", path.Dir(p))
		}
		if at == root {
			return p, nil
		}
		at, rest = path.Dir(at), path.Join(path.Base(at), rest)
		real, err := filepath.EvalSymlinks(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", failed("realpath", p, err)
		case !within(real):
			return "", refuse("Access denied - symlink target outside allowed directories: %s not in %s", real, root)
		default:
			return path.Join(real, rest), nil
		}
	}
}

// errnos are the errors that a tool is likely to meet, as Node words them.
var errnos = []struct {
	err  error
	text string
}{
	{fs.ErrNotExist, "ENOENT: no such file or directory"},
	{syscall.ENOTDIR, "ENOTDIR: not a directory"},
	{syscall.EISDIR, "EISDIR: illegal operation on a directory"},
	{syscall.EROFS, "EROFS: read-only file system"},
	{syscall.ELOOP, "ELOOP: too many symbolic links encountered"},
	{syscall.ENAMETOOLONG, "ENAMETOOLONG: name too long"},
	{fs.ErrPermission, "EACCES: permission denied"},
}

// failed words an error of an operation on a file as Node does; p is empty where the
// operation is on a descriptor.
func failed(op, p string, err error) error {
	for _, e := range errnos {
		if !errors.Is(err, e.err) {
			continue
		}
		if p == "" {
			return refuse("%s, %s", e.text, op)
		}
		return refuse("%s, %s '%s'", e.text, op, p)
	}
	return err
}
