package volume

import (
	"io/fs"
	"os"
	"time"
)

const nonblock = 0

func inodeNumber(fs.FileInfo) uint64 { return 0 }

// linked reports false: a file does not tell whether it has other names.
func linked(fs.FileInfo) bool { return false }

// folderKey returns nothing: the folder's path has to do.
func folderKey(fs.FileInfo) string { return "" }

// owner is who a file belongs to.
type owner struct{}

// ownerOf returns nobody: files are not given away.
func ownerOf(fs.FileInfo) (owner, bool) { return owner{}, false }

func (owner) give(*os.File) {}

// setLinkTime does nothing: a link has the time at which it was made.
func setLinkTime(*os.File, string, time.Time) error { return nil }

// deviceOf returns nothing: a file does not tell which file system it is on.
func deviceOf(fs.FileInfo) uint64 { return 0 }

// What may be done is found out by doing it.
func mayChange(*os.File) error      { return nil }
func mayTake(_, _ fs.FileInfo) bool { return true }
func mayTime(fs.FileInfo) bool      { return true }

// tryLock reports that folders cannot be locked.
func tryLock(*os.File, bool) (lockState, error) { return lockless, nil }

// syncRead does nothing: what was opened for reading cannot be synced.
func syncRead(*os.File) error { return nil }
