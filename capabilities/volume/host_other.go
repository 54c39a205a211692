//go:build !linux && !darwin

package volume

import (
	"io/fs"
	"time"
)

// statusTime returns the zero time: the system has none, or it is not known
// how to ask for it.
func statusTime(fs.FileInfo) time.Time { return time.Time{} }
