//go:build linux || darwin

package volume

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readAttributes returns the extended attributes of a file that are not dropped
// when it is replaced. A file system that has none has none.
func readAttributes(f *os.File) (map[string][]byte, error) {
	file := attributedBy(f)
	list, err := grown(file.list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("listxattr", err)
	}
	var found map[string][]byte
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		use := useOf(name)
		if name == "" || use == attributeDropped {
			continue
		}
		value, err := grown(func(b []byte) (int, error) { return file.get(name, b) })
		switch {
		case errors.Is(err, noAttribute):
			continue
		case err != nil && use == attributeKept:
			return nil, &AttributeError{name, err}
		case err != nil:
			continue
		}
		if found == nil {
			found = map[string][]byte{}
		}
		found[name] = value
	}
	return found, nil
}

// grown asks for a size, and then for so many bytes, until they fit.
func grown(ask func([]byte) (int, error)) ([]byte, error) {
	for {
		n, err := ask(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		n, err = ask(b)
		if err == nil {
			return b[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) {
			return nil, err
		}
	}
}

func writeAttribute(f *os.File, name string, value []byte) error {
	return unix.Fsetxattr(int(f.Fd()), name, value, 0)
}

func removeAttribute(f *os.File, name string) error {
	if err := unix.Fremovexattr(int(f.Fd()), name); err != nil && !errors.Is(err, noAttribute) {
		return err
	}
	return nil
}
