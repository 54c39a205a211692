package filetools

import (
	"math"
	"slices"
)

// change is what a run of lines is.
type change uint8

const (
	same change = iota
	removed
	added
)

// run is n lines in a row that are all the same kind of change.
type run struct {
	kind change
	n    int
}

// way is how a number of lines of the old text was turned into lines of the new one:
// its last run and the way before that.
type way struct {
	old  int // lines of the old text that are done
	last *step
}

type step struct {
	run
	before *step
}

func (s *step) then(kind change, n int) *step {
	if s != nil && s.kind == kind {
		return &step{run{kind, s.n + n}, s.before}
	}
	return &step{run{kind, n}, s}
}

// runs returns the shortest way from old to now. It is Myers' algorithm with the
// choices of npm's diff, so that of several shortest ways the same is taken.
func runs(old, now []string) []run {
	d := &differ{old: old, now: now}
	start := &way{}
	if d.slide(start, 0) == len(now) && start.old == len(old) {
		return start.runs()
	}
	// By diagonal: lines of the old text less those of the new.
	best := map[int]*way{0: start}
	low, high := math.MinInt, math.MaxInt // beyond them an end was reached
	for edits := 1; ; edits++ {
		for k := max(low, -edits); k <= min(high, edits); k += 2 {
			w := d.extend(best, k)
			if w == nil {
				delete(best, k)
				continue
			}
			done := d.slide(w, k)
			if w.old == len(old) && done == len(now) {
				return w.runs()
			}
			best[k] = w
			if w.old == len(old) {
				high = min(high, k-1)
			}
			if done == len(now) {
				low = max(low, k+1)
			}
		}
	}
}

type differ struct{ old, now []string }

// extend goes from the better neighbour of a diagonal to it, by one line removed or
// added; nil where neither can.
func (d *differ) extend(best map[int]*way, k int) *way {
	remove, add := best[k-1], best[k+1]
	delete(best, k-1)
	canAdd := add != nil && add.old-k-1 >= 0 && add.old-k-1 < len(d.now)
	canRemove := remove != nil && remove.old < len(d.old)
	switch {
	case canAdd && (!canRemove || remove.old < add.old):
		return &way{add.old, add.last.then(added, 1)}
	case canRemove:
		return &way{remove.old + 1, remove.last.then(removed, 1)}
	}
	return nil
}

// slide goes along lines that are the same and returns how many lines of the new
// text are done.
func (d *differ) slide(w *way, k int) int {
	n := 0
	i, j := w.old, w.old-k
	for i < len(d.old) && j < len(d.now) && d.old[i] == d.now[j] {
		i, j, n = i+1, j+1, n+1
	}
	if n > 0 {
		w.old, w.last = i, w.last.then(same, n)
	}
	return j
}

func (w *way) runs() []run {
	var rs []run
	for s := w.last; s != nil; s = s.before {
		rs = append(rs, s.run)
	}
	slices.Reverse(rs)
	return rs
}
