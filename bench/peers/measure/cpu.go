package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Self returns the processor time of this process and of the children that it
// has waited for.
func Self() (time.Duration, error) {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, fmt.Errorf("processor time: %w", err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all, nil
}

// Tree returns the processor time of a process and of what it started, of the
// threads that live: the scheduler's own count, to the nanosecond (Linux,
// Documentation/scheduler/sched-stats.rst).
func Tree(pid int) (time.Duration, error) {
	pids, err := Descendants(pid)
	if err != nil {
		return 0, err
	}
	var all time.Duration
	for _, p := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p))
		if err != nil {
			return 0, err
		}
		for _, t := range threads {
			b, err := os.ReadFile(t)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue // it has ended
			}
			if err != nil {
				return 0, err
			}
			ran, _, _ := strings.Cut(string(b), " ")
			ns, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", t, err)
			}
			all += time.Duration(ns)
		}
	}
	return all, nil
}

// Descendants returns a process and all that it started and that still run.
func Descendants(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): the name, in parentheses, may hold anything.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(s)))
		if err != nil {
			return nil, err
		}
		children[parent] = append(children[parent], id)
	}
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// Memory is what processes take.
type Memory struct {
	PSS     int64 // bytes, with their share of pages that others have mapped too
	Private int64 // bytes that nobody else has mapped
}

// Resident returns the memory of a process and of what it started.
func Resident(pid int) (Memory, error) {
	pids, err := Descendants(pid)
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for _, p := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p))
		if err != nil {
			return Memory{}, err
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) != 3 || f[2] != "kB" {
				continue
			}
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return Memory{}, err
			}
			switch f[0] {
			case "Pss:":
				m.PSS += kb << 10
			case "Private_Clean:", "Private_Dirty:":
				m.Private += kb << 10
			}
		}
	}
	return m, nil
}
