package asyncify

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confines: the limits of another process can be set here.
const confines = true

// limits of a process that is not trusted with what it reads.
type limits struct {
	memory uint64 // bytes that it can write to
	cpu    time.Duration
	file   uint64 // bytes of one file
}

const maxOpen = 64 // files

// alone gives a process a group of its own, which is killed as a whole.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// confine sets the limits of a process. RLIMIT_DATA counts what is writable and
// its own, and not the address space that run times reserve.
func confine(pid int, l limits) error {
	seconds := uint64(l.cpu/time.Second) + 1
	for what, most := range map[int]uint64{
		unix.RLIMIT_DATA: l.memory, unix.RLIMIT_CPU: seconds, unix.RLIMIT_FSIZE: l.file,
		unix.RLIMIT_NOFILE: maxOpen, unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Prlimit(pid, what, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return fmt.Errorf("limit %d of %d: %w", what, most, err)
		}
	}
	return nil
}
