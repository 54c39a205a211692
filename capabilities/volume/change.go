package volume

import (
	"slices"
	"strings"
)

// Change returns the difference from the base, with guards for all that was
// looked at. It is a copy: the overlay can be used further. It returns a
// [*LimitError] when moving directories changes more files than the budget
// allows, to all volumes of the call together, or when the call looked at too
// many paths; ENAMETOOLONG when it made paths too long, and the base's errors.
func (o *Overlay) Change() (*Change, error) {
	d := o.delta()
	if d.err != nil {
		return nil, d.err
	}
	if err := o.settleFiles(d.changed()); err != nil {
		return nil, err
	}
	guards, listings := o.notes.guards()
	return &Change{
		Guards: withAbsent(guards, d.steps), Listings: listings, Steps: slices.Clone(d.steps),
	}, nil
}

// settleFiles charges the budget for changed paths beyond those that it was
// charged for when the call changed them: moving a directory is one change for
// the call and many for the volume.
func (o *Overlay) settleFiles(changed int64) error {
	if changed == 0 && o.settled == 0 {
		return nil
	}
	o.budget.give(cost{files: o.settled})
	o.settled = 0
	more := max(0, changed-o.files)
	if err := o.budget.take(cost{files: more}); err != nil {
		return err
	}
	o.settled = more
	return nil
}

// withAbsent adds guards for the paths of steps that have none, because a
// listing says that there is nothing. What is put into a directory that the
// change makes needs none.
func withAbsent(guards []Guard, steps []Step) []Guard {
	if len(steps) == 0 {
		return guards
	}
	known, made := map[string]struct{}{}, map[string]struct{}{}
	for _, g := range guards {
		known[g.Path] = struct{}{}
	}
	for _, s := range steps {
		if s.Action == ActMkdir {
			made[s.Path] = struct{}{}
		}
	}
	for _, s := range steps {
		dir, _ := split(s.Path)
		_, guarded := known[s.Path]
		_, inside := made[dir]
		if !guarded && !inside {
			known[s.Path] = struct{}{}
			guards = append(guards, Guard{Path: s.Path})
		}
	}
	slices.SortFunc(guards, func(a, b Guard) int { return strings.Compare(a.Path, b.Path) })
	return guards
}
