package volume

import (
	"io/fs"
	"os"
)

const nonblock = 0

func inodeNumber(fs.FileInfo) uint64 { return 0 }

// linked reports false: a file does not tell whether it has other names.
func linked(fs.FileInfo) bool { return false }

// folderKey returns nothing: the folder's path has to do.
func folderKey(fs.FileInfo) string { return "" }

func keepOwner(*os.File, fs.FileInfo) {}

// tryLock reports that folders cannot be locked.
func tryLock(*os.File, bool) (lockState, error) { return lockless, nil }

// syncDir does nothing: directories cannot be synced.
func syncDir(*os.File) error { return nil }
