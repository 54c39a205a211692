package volume

import (
	"io/fs"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Change returns the difference from the base, with guards for all that was
// looked at. It is a copy: the overlay can be used further. It returns a
// [*LimitError] when moving directories changes more files than the budget
// allows, ENAMETOOLONG when it made paths too long, and the base's errors.
func (o *Overlay) Change() (*Change, error) {
	d := o.delta()
	if d.err != nil {
		return nil, d.err
	}
	if d.changed() > o.allowedFiles() {
		return nil, &LimitError{Resource: limitFiles}
	}
	guards, listings := o.notes.guards()
	return &Change{Guards: guards, Listings: listings, Steps: slices.Clone(d.steps)}, nil
}

func (o *Overlay) allowedFiles() int64 {
	if o.budget == nil {
		return 0
	}
	return o.budget.Files
}

// valid refuses a change that no overlay would make: it may come from a
// decoder. EINVAL.
func (c *Change) valid() error {
	for _, g := range c.Guards {
		if !fs.ValidPath(g.Path) || hidden(g.Path) {
			return capabilities.EINVAL
		}
	}
	for _, l := range c.Listings {
		if !fs.ValidPath(l.Path) || hidden(l.Path) {
			return capabilities.EINVAL
		}
	}
	for _, s := range c.Steps {
		if err := s.valid(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) valid() error {
	root := s.Path == "." && s.Action != ActTimes
	if !fs.ValidPath(s.Path) || root || hidden(s.Path) {
		return capabilities.EINVAL
	}
	if s.Base != "" && (!fs.ValidPath(s.Base) || s.Base == "." || hidden(s.Base)) {
		return capabilities.EINVAL
	}
	if s.Mode&^fs.ModePerm != 0 || s.Keep < 0 || s.Keep > s.Size || (s.Keep > 0 && s.Base == "") {
		return capabilities.EINVAL
	}
	for _, e := range s.Extents {
		if e.Offset < 0 || e.Offset > s.Size-int64(len(e.Data)) {
			return capabilities.EINVAL
		}
	}
	switch s.Action {
	case ActRemove, ActMkdir, ActPut, ActTimes:
		return nil
	case ActLink:
		if s.Target != "" || s.Base != "" {
			return nil
		}
	}
	return capabilities.EINVAL
}
