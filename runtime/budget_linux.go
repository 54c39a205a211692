package runtime

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory returns how much memory this process may have, in bytes; 0 where that is not
// known: that of the machine, or of the control group where that is less.
func machineMemory() uint64 {
	var total uint64
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		total = uint64(info.Totalram) * uint64(info.Unit)
	}
	b, err := os.ReadFile("/sys/fs/cgroup/memory.max") // "max" where there is no limit
	if err != nil {
		return total
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || total > 0 && limit > total {
		return total
	}
	return limit
}
