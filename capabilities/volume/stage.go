package volume

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// The names in a stage begin with one of these. See the package's comment.
const (
	newPart = "n-"
	oldPart = "o-"

	donePrefix = reservedPrefix + "done-"
)

// retire gives a stage a name that says that nothing is lost with it, and
// returns the name that it has then.
func (h *HostDir) retire(stage string) string {
	if rest, ok := strings.CutPrefix(stage, reservedPrefix); ok && !strings.HasPrefix(stage, donePrefix) {
		if done := donePrefix + rest; h.disk.rename(stage, done) == nil {
			return done
		}
	}
	return stage
}

// discard deletes a stage. The change is done or undone, so this is no longer a
// reason to fail; the next change tries again.
func (h *HostDir) discard(stage string) {
	stage = h.retire(stage)
	for range 2 {
		if err := h.disk.removeAll(stage); err == nil {
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale = append(h.stale, stage)
}

// sweep deletes stages that could not be deleted before and, once, those that
// other processes left. Stages that somebody fills are locked.
func (l *lockedDir) sweep() {
	h := l.host
	h.mu.Lock()
	stale := h.stale
	h.stale = nil
	h.mu.Unlock()
	for _, stage := range stale {
		h.discard(stage)
	}
	if h.swept || !l.alone {
		return
	}
	list, err := h.names(".")
	if err != nil {
		return // the next change tries again
	}
	h.swept = true
	for _, e := range list {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), reservedPrefix) || h.isStale(e.Name()) {
			continue
		}
		l.sweepStage(e.Name())
	}
}

func (l *lockedDir) sweepStage(stage string) {
	h := l.host
	dir, err := h.disk.open(stage)
	if err != nil {
		return
	}
	defer dir.Close()
	if state, err := tryLock(dir, false); err != nil || state != locked {
		return
	}
	if h.expendable(stage) {
		h.discard(stage)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned = append(h.abandoned, stage)
}

func (h *HostDir) isStale(stage string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.stale, stage)
}

// expendable reports whether nothing is lost with a stage.
func (h *HostDir) expendable(stage string) bool {
	if strings.HasPrefix(stage, donePrefix) {
		return true
	}
	parts, err := h.names(stage)
	return err == nil && !slices.ContainsFunc(parts, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), newPart)
	})
}

// prepare makes in the stage what the steps put in place. Files that are moved
// unchanged from a path that goes away are left for the places phase.
func (a *application) prepare(ctx context.Context) error {
	for i, s := range a.change.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch s.Action {
		case ActPut:
			err = a.prepareFile(i, s)
		case ActLink:
			err = a.prepareLink(i, s)
		case ActTimes:
			err = a.prepareTimes(i, s)
		case ActRemove, ActMkdir:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareLink refuses a link that is not what the step says it is: who looked
// at the change was told that.
func (a *application) prepareLink(i int, s Step) error {
	target, err := a.host.Readlink(s.Base)
	switch {
	case err != nil:
		return err
	case target != s.Target || !a.vacated[s.Base]:
		return capabilities.EINVAL
	}
	a.sources[s.Base] = true
	a.staged[i] = ""
	return nil
}

func (a *application) prepareFile(i int, s Step) error {
	moved, err := a.movedWhole(s)
	if err != nil {
		return err
	}
	if moved {
		a.sources[s.Base] = true
		a.staged[i] = ""
		return nil
	}
	return a.stageFile(i, s)
}

// prepareTimes makes a copy of a file that has other names, perhaps outside the
// volume: their times are not the call's to set.
func (a *application) prepareTimes(i int, s Step) error {
	if !a.known[s.Path] || a.vacated[s.Path] {
		return nil
	}
	fi, err := a.disk.lstat(s.Path)
	if err != nil || !linked(fi) {
		return err
	}
	s.Base, s.Keep, s.Size, s.Mode = s.Path, fi.Size(), fi.Size(), fi.Mode().Perm()
	return a.stageFile(i, s)
}

// stageFile makes a step's file.
func (a *application) stageFile(i int, s Step) error {
	a.staged[i] = a.part(newPart)
	f, err := a.disk.create(a.staged[i])
	if err != nil {
		return err
	}
	err = a.fill(f, s, a.staged[i])
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// movedWhole reports whether the step moves a file of the base as it is. One
// that has other names, perhaps outside the volume, is copied when its mode or
// time would change with it.
func (a *application) movedWhole(s Step) (bool, error) {
	if s.Base == "" || s.Base == s.Path || !a.vacated[s.Base] || len(s.Extents) > 0 || s.Keep != s.Size {
		return false, nil
	}
	fi, err := a.disk.lstat(s.Base)
	if err != nil {
		return false, err
	}
	switch kindOf(fi.Mode()) {
	case File:
		return fi.Size() == s.Size && (!linked(fi) || adjusted(fi, s)), nil
	case Special:
		return true, nil
	case Dir, Symlink:
	}
	return false, ErrConflict
}

// fill writes the content, owner, mode and time of a step's file, durably.
func (a *application) fill(f *os.File, s Step, name string) error {
	if err := a.copyBase(f, s); err != nil {
		return err
	}
	for _, e := range s.Extents {
		if err := a.disk.hit("write", name); err != nil {
			return err
		}
		if _, err := f.WriteAt(e.Data, e.Offset); err != nil {
			return err
		}
	}
	if err := a.disk.hit("truncate", name); err != nil {
		return err
	}
	if err := f.Truncate(s.Size); err != nil {
		return err
	}
	if err := a.owner(f, s.Path); err != nil {
		return err
	}
	if err := a.disk.chmod(name, s.Mode); err != nil {
		return err
	}
	if !s.ModTime.IsZero() {
		if err := a.disk.chtimes(name, s.ModTime); err != nil {
			return err
		}
	}
	if err := a.disk.hit("sync", name); err != nil {
		return err
	}
	return f.Sync()
}

// owner gives a new file the owner of the one that it replaces. Only a path
// that the call saw is looked at: others may lead through what goes away.
func (a *application) owner(f *os.File, path string) error {
	if !a.known[path] {
		return nil
	}
	old, err := a.disk.lstat(path)
	if err != nil {
		return err
	}
	keepOwner(f, old)
	return nil
}

// copyBase copies what a step keeps of a base file.
func (a *application) copyBase(f *os.File, s Step) error {
	if s.Keep == 0 {
		return nil
	}
	if err := a.disk.hit("open", s.Base); err != nil {
		return err
	}
	src, err := a.host.open(s.Base)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := a.disk.hit("copy", s.Base); err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(src, s.Keep))
	if err == nil && n < s.Keep {
		err = ErrConflict
	}
	return err
}
