package host

import (
	"os"
	goruntime "runtime"
)

// othersWrite is the permission bits of everybody but the owner to write.
const othersWrite = 0o022

// warnOpen says that others may replace what is in the state folder, where that is
// so. Some systems have groups of one member, so it is no error.
func (h *Host) warnOpen() {
	info, err := os.Stat(h.state)
	if err != nil || goruntime.GOOS == "windows" || info.Mode().Perm()&othersWrite == 0 {
		return
	}
	h.logger.Warn("state folder can be written by others: they could change data and approvals; run chmod go-rwx on it", "folder", h.state, "mode", info.Mode().Perm())
}
