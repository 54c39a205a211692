package files_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/files"
)

// rule is one operation of the golden table.
type rule struct {
	name string
	do   func(*world) error
}

// open opens a path and closes it again.
func open(path string, in files.Intent) func(*world) error {
	return func(w *world) error {
		f, err := w.root.Open(path, in)
		if err != nil {
			return err
		}
		return f.Close()
	}
}

// on opens a path and does something to the handle.
func on(path string, in files.Intent, do func(*files.Handle) error) func(*world) error {
	return func(w *world) error {
		f, err := w.root.Open(path, in)
		if err != nil {
			return err
		}
		err = do(f)
		if c := f.Close(); err == nil {
			err = c
		}
		return err
	}
}

// root does something to the handle of the root.
func root(do func(*files.Handle) error) func(*world) error {
	return func(w *world) error { return do(w.root) }
}

var (
	reading = files.Intent{Read: true, Follow: true}
	writing = files.Intent{Write: true, Follow: true}
	both    = files.Intent{Read: true, Write: true, Follow: true}
	later   = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
)

func write(b string, off int64) func(*files.Handle) error {
	return func(h *files.Handle) error { n, err := h.WriteAt([]byte(b), off); return count(n, err) }
}

func add(b string) func(*files.Handle) error {
	return func(h *files.Handle) error { n, _, err := h.Append([]byte(b)); return count(n, err) }
}

func read(n int, off int64) func(*files.Handle) error {
	return func(h *files.Handle) error {
		b := make([]byte, n)
		n, err := h.ReadAt(b, off)
		if err != nil {
			return err
		}
		return shown(fmt.Sprintf("%q", b[:n]))
	}
}

func size(n int64) func(*files.Handle) error {
	return func(h *files.Handle) error { return h.SetSize(n) }
}

func allocate(off, n int64) func(*files.Handle) error {
	return func(h *files.Handle) error { return h.Allocate(off, n) }
}

func times(t files.Times) func(*files.Handle) error {
	return func(h *files.Handle) error { return h.SetTimes(t) }
}

func list(h *files.Handle) error {
	l, err := h.ReadDir()
	if err != nil {
		return err
	}
	var names []string
	for _, e := range l {
		names = append(names, e.Name)
	}
	return shown(strings.Join(names, " "))
}

func stat(path string, follow bool) func(*world) error {
	return root(func(h *files.Handle) error {
		i, err := h.StatPath(path, follow)
		if err != nil {
			return err
		}
		return shown(fmt.Sprintf("kind %d, %d bytes", i.Kind, i.Size))
	})
}

func readlink(path string) func(*world) error {
	return root(func(h *files.Handle) error {
		s, err := h.Readlink(path)
		if err != nil {
			return err
		}
		return shown(s)
	})
}

func rename(from, to string) func(*world) error {
	return root(func(h *files.Handle) error { return h.Rename(from, h, to) })
}

func named(do func(*files.Handle, string) error, path string) func(*world) error {
	return root(func(h *files.Handle) error { return do(h, path) })
}

func count(n int, err error) error {
	if err != nil {
		return err
	}
	return shown(fmt.Sprintf("%d bytes", n))
}
