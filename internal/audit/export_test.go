package audit

import "time"

// LockName is the name of the lock's file.
const LockName = lockName

// SetLockWait sets how long a record waits for the lock.
func (l *Log) SetLockWait(d time.Duration) { l.lock.wait = d }

// Follower is Follow, a look at a time.
type Follower struct {
	r      reader
	read   files
	missed int
}

// NewFollower returns a follower that hands each record to each.
func NewFollower(each func(Record) error) *Follower {
	f := &Follower{}
	f.r = reader{each: each, missed: func() { f.missed++ }}
	return f
}

// Look hands on what came since the last look.
func (f *Follower) Look(state string) (err error) {
	f.read, err = f.r.next(state, f.read)
	return err
}

// Open returns how many files are open.
func (f *Follower) Open() int { return len(f.read) }

// Skipped returns how many torn records were skipped.
func (f *Follower) Skipped() int { return f.r.skipped }

// Missed returns how often records were told to be gone.
func (f *Follower) Missed() int { return f.missed }

// Close closes the files.
func (f *Follower) Close() { f.read.close() }
