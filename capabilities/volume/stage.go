package volume

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// The names in a stage begin with one of these. See the package's comment.
const (
	newPart     = "n-"
	oldPart     = "o-"
	movedPart   = "m-"
	removedPart = "r-"
	foreignPart = "f-"

	donePrefix = reservedPrefix + "done-"
	keptPrefix = reservedPrefix + "kept-"
	txPrefix   = reservedPrefix + "tx-"
)

// newStage returns a name for a stage. That of a change that is committed
// elsewhere says where.
func (h *HostDir) newStage() string {
	if h.intents == nil {
		return reservedPrefix + rand.Text()
	}
	return h.ownPrefix() + rand.Text()
}

func (h *HostDir) ownPrefix() string {
	if h.owner == "" {
		return txPrefix + "-"
	}
	sum := sha256.Sum256([]byte(h.owner))
	return txPrefix + hex.EncodeToString(sum[:8]) + "-"
}

// quietly does what makes or takes away a name in the root. The root keeps its
// time: guests cannot see the name.
func (h *HostDir) quietly(do func() error) error {
	h.publishing.Lock()
	defer h.publishing.Unlock()
	fi, err := h.disk.lstat(".")
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	_ = h.disk.chtimes(".", fi.ModTime()) // only the owner can set it
	return nil
}

// retire gives a stage a name that says that nothing is lost with it, and
// returns the name that it has then.
func (h *HostDir) retire(stage string) string {
	if rest, ok := strings.CutPrefix(stage, reservedPrefix); ok && !strings.HasPrefix(stage, donePrefix) {
		done := donePrefix + rest
		if h.quietly(func() error { return h.disk.rename(stage, done) }) == nil {
			return done
		}
	}
	return stage
}

// retired gives the stage of a committed change that is in place another name,
// durably, before anything in it is deleted: without a stage the change is done.
// It returns the new name, or nothing when the stage has to stay because there is
// something of somebody else in it.
func (h *HostDir) retired(stage string, kept bool) (string, error) {
	rest, to := strings.TrimPrefix(stage, reservedPrefix), donePrefix
	parts, err := h.parts(stage)
	if err != nil {
		return "", err
	}
	kept = kept || slices.ContainsFunc(parts, func(name string) bool { return strings.HasPrefix(name, foreignPart) })
	if kept {
		to = keptPrefix
	}
	to += rest
	if err := h.quietly(func() error { return h.disk.rename(stage, to) }); err != nil {
		return "", err
	}
	if err := h.disk.syncDir("."); err != nil {
		return "", err
	}
	if !kept {
		return to, nil
	}
	h.mu.Lock()
	h.abandoned = append(h.abandoned, to)
	h.mu.Unlock()
	for _, name := range parts {
		if !strings.HasPrefix(name, foreignPart) {
			_ = h.disk.removeAll(join(to, name)) // it is only in the way
		}
	}
	return "", nil
}

// parts returns the names in a stage.
func (h *HostDir) parts(stage string) ([]string, error) {
	list, err := h.names(stage)
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, err
}

// discard deletes a stage. The change is done or undone, so this is no longer a
// reason to fail; the next change tries again.
func (h *HostDir) discard(stage string) { h.empty(h.retire(stage)) }

// leave notes a stage that may be that of a committed change.
func (h *HostDir) leave(stage string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = append(h.left, stage)
}

// empty deletes a stage that was retired.
func (h *HostDir) empty(stage string) {
	if stage == "" {
		return
	}
	for range 2 {
		if h.delete(stage) == nil {
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale = append(h.stale, stage)
}

// delete deletes a stage. Readers are kept out for its own name only.
func (h *HostDir) delete(stage string) error {
	parts, err := h.parts(stage)
	if err != nil {
		if isAbsent(errnoOf(err)) {
			return nil
		}
		return err
	}
	for _, name := range parts {
		if err := h.disk.removeAll(join(stage, name)); err != nil {
			return err
		}
	}
	return h.quietly(func() error { return h.disk.remove(stage) })
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
		name := e.Name()
		others := strings.HasPrefix(name, txPrefix) && (h.intents == nil || !strings.HasPrefix(name, h.ownPrefix()))
		if !e.IsDir() || !strings.HasPrefix(name, reservedPrefix) || h.isStale(name) || others {
			continue
		}
		l.sweepStage(name)
	}
}

// sweepLeft deletes stages that were left because it was not known whether they
// were committed: they were not, or their changes would be in place by now.
func (l *lockedDir) sweepLeft() {
	h := l.host
	h.mu.Lock()
	left := h.left
	h.left = nil
	h.mu.Unlock()
	for _, stage := range left {
		if fi, err := h.disk.exists(stage); err == nil && fi != nil && h.expendable(stage, true) {
			h.discard(stage)
		}
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
	if h.expendable(stage, h.owner != "") {
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

// expendable reports whether nothing is lost with a stage that nobody fills and
// that is not pending. The latter is known only of those that are ours.
func (h *HostDir) expendable(stage string, ours bool) bool {
	if strings.HasPrefix(stage, donePrefix) {
		return true
	}
	committed := strings.HasPrefix(stage, txPrefix)
	if committed && !ours {
		return false
	}
	parts, err := h.parts(stage)
	return err == nil && !slices.ContainsFunc(parts, func(name string) bool {
		return !strings.HasPrefix(name, newPart) && !(committed && strings.HasPrefix(name, removedPart))
	})
}
