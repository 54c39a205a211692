package volume

import (
	"context"
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
		if _, changed := h.holds(ctx, c); errors.Is(changed, ErrConflict) {
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
	found     map[string]Stamp // by guarded path; nil: the guards were not checked
	pub       *publication
	retired   string // what is left of the stage
	published bool
	torn      bool
}

// fill makes the stage and what is in it. When the change is committed elsewhere
// all of that is durable by then: the files, then their names, then the stage's.
func (s *stagedChange) fill(ctx context.Context) error {
	for range maxStages {
		stage, err := s.make()
		if err != nil {
			return err
		}
		if stage == "" {
			continue
		}
		if err := s.app.prepare(ctx); err != nil || s.host.intents == nil {
			return err
		}
		for _, dir := range []string{stage, "."} {
			if err := s.host.disk.syncDir(dir); err != nil {
				return err
			}
		}
		return nil
	}
	return capabilities.EAGAIN
}

// make makes and locks a stage. It returns nothing when somebody has taken the
// stage away before it was locked.
func (s *stagedChange) make() (string, error) {
	stage := s.host.newStage()
	if err := s.host.quietly(func() error { return s.host.disk.mkdir(stage, 0o700) }); err != nil {
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
	s.lock, err = s.host.settled(ctx, s.change.Empty())
	return err
}

// Check is that of [Staged].
func (s *stagedChange) Check(ctx context.Context) error {
	found, err := s.host.holds(ctx, s.change)
	if err != nil {
		return err
	}
	if s.app != nil && s.host.intents != nil {
		if err := s.app.allowed(); err != nil {
			return fmt.Errorf("volume check: %w", named(err))
		}
	}
	s.found = found
	return nil
}

// Intent is that of [Intending].
func (s *stagedChange) Intent() []byte {
	if s.app == nil || s.host.intents == nil {
		return nil
	}
	if s.pub == nil {
		s.pub = s.app.plan(s.found, true)
	}
	return s.host.intentOf(s.pub)
}

// Publish is that of [Staged].
func (s *stagedChange) Publish(ctx context.Context) error {
	committed := s.pub != nil
	if s.found == nil && !committed {
		if err := s.Check(ctx); err != nil {
			return err
		}
	}
	if s.app == nil {
		return nil
	}
	s.lock.sweep()
	if !committed {
		s.pub = s.app.plan(s.found, false)
	}
	err := s.pub.run()
	if err == nil && committed {
		s.retired, err = s.host.retired(s.app.stage, s.pub.kept)
	}
	if err == nil {
		s.published = true
		return nil
	}
	if !committed {
		s.settle(err)
	} else if errors.Is(err, ErrConflict) {
		err = fmt.Errorf("%w: %s", capabilities.EIO, err.Error()) // nobody may run the call again
	}
	return fmt.Errorf("volume publish: %w", named(err))
}

// Undo is that of [Staged].
func (s *stagedChange) Undo() error {
	switch {
	case !s.published:
		return nil
	case s.pub.forward:
		return fmt.Errorf("volume undo: %w: the change is committed", ErrTorn)
	}
	s.published = false
	err := s.pub.unpublish()
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
	s.host.remember(s.change.Guards, s.pub.disturbed)
	s.app, s.pub = nil, nil
}

// Drop is that of [Intending].
func (s *stagedChange) Drop() {
	if !s.published {
		s.pub = nil
	}
}

// Close is that of [Staged].
func (s *stagedChange) Close() {
	stage := s.retired
	switch {
	case s.app == nil, s.torn, s.published && s.pub.forward:
	case !s.published && s.pub != nil: // committed, perhaps
		s.host.leave(s.app.stage)
	default:
		stage = s.host.retire(s.app.stage)
	}
	if s.lock != nil {
		s.lock.unlock()
	}
	s.host.empty(stage)
	if s.hold != nil {
		_ = s.hold.Close() // it was only held
	}
	s.app, s.pub, s.lock, s.hold, s.retired = nil, nil, nil, nil, ""
}
