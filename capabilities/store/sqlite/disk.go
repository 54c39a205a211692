package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"
	goruntime "runtime"
)

// disk is the folder of the blobs.
type disk interface {
	// Create makes a new file that only the owner can read.
	Create(name string) (file, error)
	Open(name string) (io.ReadCloser, error)
	Rename(from, to string) error
	Remove(name string) error
	// Mkdir makes a folder; one that is there is none of its errors.
	Mkdir(name string) error
	// SyncFolder makes the names in a folder durable.
	SyncFolder(name string) error
	Stat(name string) (fs.FileInfo, error)
	List(name string) ([]string, error)
	Close() error
}

type file interface {
	io.WriteCloser
	Sync() error
}

// osDisk is a folder of the system, which names cannot leave.
func osDisk(folder string) (disk, error) {
	r, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return rootDisk{r}, nil
}

type rootDisk struct{ *os.Root }

func (d rootDisk) Create(name string) (file, error) {
	f, err := d.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err // a nil *os.File would not be a nil file
	}
	return f, nil
}

func (d rootDisk) Open(name string) (io.ReadCloser, error) {
	f, err := d.Root.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d rootDisk) Mkdir(name string) error {
	if err := d.Root.Mkdir(name, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (d rootDisk) SyncFolder(name string) error {
	f, err := d.Root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(syncOpen(f), f.Close())
}

func (d rootDisk) List(name string) ([]string, error) {
	f, err := d.Root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(syncOpen(f), f.Close())
}

// syncOpen syncs a folder. Windows has no such thing: there names are as durable
// as the files.
func syncOpen(f *os.File) error {
	if goruntime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}
