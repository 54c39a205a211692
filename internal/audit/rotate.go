package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockName is the name in the state folder of the file whose lock is held while
// a record is written or a file rotated. It stays empty.
const lockName = "log.lock"

// lockWait is how long a record waits for the lock. Others hold it for the time
// of a write; one that holds it longer is stopped or its disk is stuck, and must
// not stop everybody's calls.
const lockWait = 2 * time.Second

type lock struct {
	file *flock.Flock
	wait time.Duration
}

func newLock(state string) lock {
	return lock{file: flock.New(filepath.Join(state, lockName), flock.SetPermissions(0o600)), wait: lockWait}
}

// acquire reports whether the lock was to be had in time. It asks again and
// again instead of being blocked: a system call that waits for a lock cannot be
// given up.
func (l lock) acquire() bool {
	deadline := time.Now().Add(l.wait)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if ok, err := l.file.TryLock(); ok || err != nil {
			return ok
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

func (l lock) release() { l.file.Unlock() }

// rotate gives the current file and the older ones the next name. The error says
// why that cannot be done, and is nil when that was said before.
// Preconditions: l.mu and the lock are held.
func (l *Log) rotate() error {
	err := l.shift()
	said := l.stuck
	l.stuck = err != nil
	if said {
		return nil
	}
	return err
}

// shift renames the files, oldest first. A shift that was cut short leaves a gap
// in the names, up to which the next one goes: only the oldest file of those to
// keep is ever replaced.
func (l *Log) shift() error {
	free := 1
	for free < l.keep && exists(l.path(free)) {
		free++
	}
	for age := free; age > 0; age-- {
		if err := os.Rename(l.path(age-1), l.path(age)); err != nil {
			return err
		}
	}
	return l.prune()
}

// prune deletes files beyond those to keep, which are there when more were kept
// before.
func (l *Log) prune() error {
	var errs []error
	for age := l.keep + 1; age <= MaxKeep; age++ {
		if err := os.Remove(l.path(age)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
