package volume

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sandboxd/sandboxd/capabilities"
)

// maxStages bounds how often a stage is made that somebody takes for a dead
// process's before it can be locked.
const maxStages = 3

// Stage prepares a change in a stage of its own, which nobody sees. The folder
// is not locked for that: copying and syncing take long. What it copies may
// change meanwhile, which the guards tell later.
func (h *HostDir) Stage(ctx context.Context, c *Change) (Staged, error) {
	s, err := h.stage(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (h *HostDir) stage(ctx context.Context, c *Change) (*stagedChange, error) {
	if err := c.valid(); err != nil {
		return nil, fmt.Errorf("volume change: %w", err)
	}
	s := &stagedChange{host: h, change: c}
	if c.Empty() {
		return s, nil
	}
	if err := s.fill(ctx); err != nil {
		s.Close()
		if changed := h.holds(ctx, c); errors.Is(changed, ErrConflict) {
			err = changed
		}
		return nil, fmt.Errorf("volume stage: %w", named(err))
	}
	return s, nil
}

// stagedChange is a change in a stage.
type stagedChange struct {
	host      *HostDir
	change    *Change
	app       *application
	hold      *os.File // keeps the stage from being taken for one that was left
	lock      *lockedDir
	checked   bool
	published bool
	torn      bool
}

func (s *stagedChange) fill(ctx context.Context) error {
	for range maxStages {
		stage, err := s.make()
		if err != nil {
			return err
		}
		if stage != "" {
			return s.app.prepare(ctx)
		}
	}
	return capabilities.EAGAIN
}

// make makes and locks a stage. It returns nothing when somebody has taken the
// stage away before it was locked.
func (s *stagedChange) make() (string, error) {
	stage, disk := reservedPrefix+rand.Text(), s.host.disk
	if err := disk.mkdir(stage, 0o700); err != nil {
		return "", err
	}
	s.app = newApplication(s.host, s.change, stage)
	err := s.holdStage(stage)
	if errors.Is(err, errTaken) {
		s.app = nil
		return "", nil
	}
	return stage, err
}

// errTaken: somebody has taken a stage for one that was left.
var errTaken = errors.New("stage taken away")

// holdStage locks the stage, where there are locks.
func (s *stagedChange) holdStage(stage string) error {
	dir, err := s.host.disk.open(stage)
	if err != nil {
		return takenIfAbsent(err)
	}
	state, err := tryLock(dir, false)
	if err == nil && state == locked {
		var at fs.FileInfo
		if at, err = s.host.disk.lstat(stage); err == nil {
			if is, serr := dir.Stat(); serr == nil && os.SameFile(at, is) {
				s.hold = dir
				return nil
			}
			state = lockedByOther
		}
	}
	if err == nil && state == lockedByOther {
		err = errTaken
	}
	_ = dir.Close() // it was only held
	return takenIfAbsent(err)
}

func takenIfAbsent(err error) error {
	if err != nil && isAbsent(errnoOf(err)) {
		return errTaken
	}
	return err
}

// Lock is that of [Staged].
func (s *stagedChange) Lock(ctx context.Context) (err error) {
	s.lock, err = s.host.lock(ctx, s.change.Empty())
	return err
}

// Check is that of [Staged].
func (s *stagedChange) Check(ctx context.Context) error {
	err := s.host.holds(ctx, s.change)
	s.checked = err == nil
	return err
}

// Publish is that of [Staged].
func (s *stagedChange) Publish(ctx context.Context) error {
	if !s.checked {
		if err := s.Check(ctx); err != nil {
			return err
		}
	}
	if s.app == nil {
		return nil
	}
	s.lock.sweep()
	err := s.app.publish()
	if err == nil {
		s.published = true
		return nil
	}
	s.settle(err)
	return fmt.Errorf("volume publish: %w", named(err))
}

// Undo is that of [Staged].
func (s *stagedChange) Undo() error {
	if !s.published {
		return nil
	}
	s.published = false
	err := s.app.unpublish()
	s.settle(err)
	if err != nil {
		return fmt.Errorf("volume undo: %w", err)
	}
	return nil
}

// settle ends a change that was taken back, or could not be.
func (s *stagedChange) settle(err error) {
	if s.torn = errors.Is(err, ErrTorn); s.torn {
		return
	}
	s.host.discard(s.app.stage) // before remembering: it holds links to files
	s.host.remember(s.change.Guards, s.app.disturbed)
	s.app = nil
}

// Close is that of [Staged].
func (s *stagedChange) Close() {
	stage := ""
	if s.app != nil && !s.torn {
		stage = s.host.retire(s.app.stage)
		if s.published && s.app.rootTimed() {
			s.host.discard(stage)
			s.app.settleRoot()
			stage = ""
		}
	}
	if s.lock != nil {
		s.lock.unlock()
	}
	if stage != "" {
		s.host.discard(stage)
	}
	if s.hold != nil {
		_ = s.hold.Close() // it was only held
	}
	s.app, s.lock, s.hold = nil, nil, nil
}
