package volume

import (
	"slices"
	"time"
)

// maxUndone bounds how many files are remembered. Beyond it all are forgotten,
// and changes that were prepared before conflict.
const maxUndone = 10_000

// undone remembers files that a change touched and that were brought back: with
// the same content, and another status change time.
type undone map[string]broughtBack

type broughtBack struct {
	now  Stamp
	were []Stamp // the stamps that the same content had before
}

// before returns the guard's stamp for a file that is as the guard saw it but
// for having been brought back, any other as it is.
func (u undone) before(g Guard, is Stamp) Stamp {
	b, ok := u[g.Path]
	plain := is
	plain.Digest = ""
	if !ok || !plain.Same(b.now) {
		return is
	}
	if i := slices.IndexFunc(b.were, func(s Stamp) bool { s.Digest = is.Digest; return s.Same(g.Stamp) }); i >= 0 {
		return g.Stamp
	}
	return is
}

func (h *HostDir) before(g Guard, is Stamp) Stamp {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.undone.before(g, is)
}

// remember notes, of the files that a change touched before it was taken back,
// what they are now. A file that is not as before, or that somebody is changing,
// is left out.
func (h *HostDir) remember(guards []Guard, touched map[string]struct{}) {
	now := map[string]Stamp{}
	for _, g := range guards {
		if _, ok := touched[g.Path]; !ok || !g.Stamp.Exists || g.Stamp.Kind == Dir {
			continue
		}
		if st, err := h.stampNow(g.Path); err == nil && onlyStatusChanged(st, g.Stamp) {
			now[g.Path] = st
		}
	}
	if len(now) == 0 {
		return
	}
	time.Sleep(tick) // so that a further change shows in the times
	for _, g := range guards {
		st, ok := now[g.Path]
		if !ok {
			continue
		}
		fi, err := h.disk.lstat(g.Path)
		if err != nil || early(fi) || !st.Same(stampOf(fi)) {
			continue
		}
		h.mu.Lock()
		h.undone = h.undone.with(g, st)
		h.mu.Unlock()
	}
}

func onlyStatusChanged(a, b Stamp) bool {
	a.Changed, a.Digest = b.Changed, b.Digest
	return a.Same(b)
}

func (u undone) with(g Guard, now Stamp) undone {
	if u == nil || len(u) >= maxUndone {
		u = undone{}
	}
	was := g.Stamp
	was.Digest = ""
	b := u[g.Path]
	// The guard held: what was before is before now, if it was known at all.
	known := slices.ContainsFunc(b.were, was.Same) || b.now.Same(was)
	if !known {
		b.were = nil
	} else if b.now.Exists && !slices.ContainsFunc(b.were, b.now.Same) {
		b.were = append(b.were, b.now)
	}
	if !slices.ContainsFunc(b.were, was.Same) {
		b.were = append(b.were, was)
	}
	b.now = now
	u[g.Path] = b
	return u
}
