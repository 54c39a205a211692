package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// disk does what a change does to the host's file system. A test sets fault to
// make chosen operations fail, done to be told of those that were done (to is the
// second name of a rename or link), see to be shown other times, and apart to have
// folders on other file systems.
type disk struct {
	root  *os.Root
	fault func(op, name string) error
	done  func(op, name, to string)
	see   func(fs.FileInfo) fs.FileInfo
	apart func(from, to string) bool
}

// together refuses what cannot be done across file systems.
func (d disk) together(from, to string) error {
	if d.apart != nil && d.apart(from, to) {
		return syscall.EXDEV
	}
	return nil
}

func (d disk) hit(op, name string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(op, name)
}

// did tells of an operation and returns its error.
func (d disk) did(op, name, to string, err error) error {
	if err == nil && d.done != nil {
		d.done(op, name, to)
	}
	return err
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
	return d.look(p)
}

// look is lstat of a path in the host's spelling.
func (d disk) look(path string) (fs.FileInfo, error) {
	fi, err := d.root.Lstat(path)
	if err == nil && d.see != nil {
		fi = d.see(fi)
	}
	return fi, err
}

// exists returns what is at a path, nil for nothing.
func (d disk) exists(name string) (fs.FileInfo, error) {
	fi, err := d.lstat(name)
	if err != nil && isAbsent(errnoOf(err)) {
		return nil, nil
	}
	return fi, err
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
	f, err := d.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, d.did("create", name, "", err)
}

func (d disk) mkdir(name string, mode fs.FileMode) error {
	p, err := d.on("mkdir", name)
	if err != nil {
		return err
	}
	return d.did("mkdir", name, "", d.root.Mkdir(p, mode))
}

func (d disk) chmod(name string, mode fs.FileMode) error {
	p, err := d.on("chmod", name)
	if err != nil {
		return err
	}
	return d.did("chmod", name, "", d.root.Chmod(p, mode))
}

func (d disk) chtimes(name string, mtime time.Time) error {
	p, err := d.on("chtimes", name)
	if err != nil {
		return err
	}
	return d.did("chtimes", name, "", d.root.Chtimes(p, time.Time{}, mtime))
}

func (d disk) remove(name string) error {
	p, err := d.on("remove", name)
	if err != nil {
		return err
	}
	return d.did("remove", name, "", d.root.Remove(p))
}

func (d disk) removeAll(name string) error {
	p, err := d.on("removeall", name)
	if err != nil {
		return err
	}
	return d.did("removeall", name, "", d.root.RemoveAll(p))
}

func (d disk) rename(from, to string) error {
	p, err := d.on("rename", from)
	if err != nil {
		return err
	}
	q, err := d.on("rename to", to)
	if err != nil {
		return err
	}
	if err := d.together(from, to); err != nil {
		return err
	}
	return d.did("rename", from, to, d.root.Rename(p, q))
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
	if err := d.together(from, to); err != nil {
		return err
	}
	return d.did("link", from, to, d.root.Link(p, q))
}

// symlink makes a link.
func (d disk) symlink(target, to string) error {
	q, err := d.on("symlink", to)
	if err != nil {
		return err
	}
	return d.did("symlink", to, "", d.root.Symlink(target, q))
}

// relink makes a link with the target and, where the system can set it, the time of
// another.
func (d disk) relink(from, to string) error {
	p, err := d.on("symlink", from)
	if err != nil {
		return err
	}
	q, err := local(to)
	if err != nil {
		return err
	}
	target, err := d.root.Readlink(p)
	if err != nil {
		return err
	}
	fi, err := d.root.Lstat(p)
	if err != nil {
		return err
	}
	if err := d.did("symlink", from, to, d.root.Symlink(target, q)); err != nil {
		return err
	}
	in, name := split(to)
	dir, err := d.open(in)
	if err != nil {
		return err
	}
	defer dir.Close()
	return setLinkTime(dir, name, fi.ModTime())
}

// target returns where a link leads.
func (d disk) target(name string) (string, error) {
	p, err := d.on("readlink", name)
	if err != nil {
		return "", err
	}
	return d.root.Readlink(p)
}

// syncFile makes a file's content, mode and times durable.
func (d disk) syncFile(f *os.File, name string) error {
	if err := d.hit("sync", name); err != nil {
		return err
	}
	return d.did("sync file", name, "", f.Sync())
}

// syncTimes is syncFile for a file that was not written. One that cannot be read
// is left to the system.
func (d disk) syncTimes(name string) error {
	f, err := d.open(name)
	if errors.Is(errnoOf(err), capabilities.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.hit("sync", name); err != nil {
		return err
	}
	return d.did("sync file", name, "", syncRead(f))
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
	return d.did("sync", name, "", syncRead(f))
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
