package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// disk does what Apply does to the host's file system. A test sets fault to
// make chosen operations fail.
type disk struct {
	root  *os.Root
	fault func(op, name string) error
}

func (d disk) hit(op, name string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(op, name)
}

// on returns the host's spelling of a path, or why the operation fails.
func (d disk) on(op, name string) (string, error) {
	if err := d.hit(op, name); err != nil {
		return "", err
	}
	return local(name)
}

func (d disk) lstat(name string) (fs.FileInfo, error) {
	p, err := d.on("lstat", name)
	if err != nil {
		return nil, err
	}
	return d.root.Lstat(p)
}

func (d disk) open(name string) (*os.File, error) {
	p, err := d.on("open", name)
	if err != nil {
		return nil, err
	}
	return d.root.OpenFile(p, os.O_RDONLY|nonblock, 0)
}

func (d disk) create(name string) (*os.File, error) {
	p, err := d.on("create", name)
	if err != nil {
		return nil, err
	}
	return d.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d disk) mkdir(name string, mode fs.FileMode) error {
	p, err := d.on("mkdir", name)
	if err != nil {
		return err
	}
	return d.root.Mkdir(p, mode)
}

func (d disk) chmod(name string, mode fs.FileMode) error {
	p, err := d.on("chmod", name)
	if err != nil {
		return err
	}
	return d.root.Chmod(p, mode)
}

func (d disk) chtimes(name string, mtime time.Time) error {
	p, err := d.on("chtimes", name)
	if err != nil {
		return err
	}
	return d.root.Chtimes(p, time.Time{}, mtime)
}

func (d disk) remove(name string) error {
	p, err := d.on("remove", name)
	if err != nil {
		return err
	}
	return d.root.Remove(p)
}

func (d disk) removeAll(name string) error {
	p, err := d.on("removeall", name)
	if err != nil {
		return err
	}
	return d.root.RemoveAll(p)
}

func (d disk) rename(from, to string) error {
	p, err := d.on("rename", from)
	if err != nil {
		return err
	}
	q, err := local(to)
	if err != nil {
		return err
	}
	return d.root.Rename(p, q)
}

func (d disk) link(from, to string) error {
	p, err := d.on("link", from)
	if err != nil {
		return err
	}
	q, err := local(to)
	if err != nil {
		return err
	}
	return d.root.Link(p, q)
}

// syncDir makes the names of a directory durable.
func (d disk) syncDir(name string) error {
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.hit("sync", name); err != nil {
		return err
	}
	return syncDir(f)
}

// hasNames reports whether a directory has entries.
func (d disk) hasNames(name string) (bool, error) {
	f, err := d.open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, err
}
