//go:build !linux && !darwin

package volume

import (
	"io/fs"
	"os"
	"time"
)

// statusTime returns the zero time: the system has none, or it is not known
// how to ask for it.
func statusTime(fs.FileInfo) time.Time { return time.Time{} }

// fineTimes reports false: it is not known which file systems count nanoseconds.
func fineTimes(*os.File) bool { return false }
