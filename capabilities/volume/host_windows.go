package volume

import (
	"io/fs"
	"os"
)

const nonblock = 0

func inodeNumber(fs.FileInfo) uint64 { return 0 }

func keepOwner(*os.File, fs.FileInfo) {}

// tryLock reports true: folders cannot be locked.
func tryLock(*os.File) bool { return true }

// syncDir does nothing: directories cannot be synced.
func syncDir(*os.File) error { return nil }
