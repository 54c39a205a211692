package volume

import (
	"io/fs"
	"syscall"
	"time"
)

// statusTime returns the time of a file's last change of any sort.
func statusTime(fi fs.FileInfo) time.Time {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
