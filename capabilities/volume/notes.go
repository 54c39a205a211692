package volume

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	// maxNotes bounds the memory of what a call is remembered to have looked
	// at: a guest may look up names that do not exist for as long as it runs.
	maxNotes = 256 << 20
	noteCost = 256 // bytes per path besides its name, about
)

// notes remembers what a call has seen of a base. It sees each path once: what
// is seen twice is what was seen first.
type notes struct {
	base   Base
	stamps map[string]Stamp
	lists  map[string][]Entry
	held   int64
}

func newNotes(b Base) notes {
	return notes{base: b, stamps: map[string]Stamp{}, lists: map[string][]Entry{}}
}

// look returns what the base has at a path, and whether there is anything.
func (s *notes) look(path string) (Info, bool, error) {
	cost := int64(len(path) + noteCost)
	if s.held+cost > maxNotes {
		return Info{}, false, &LimitError{Resource: limitPaths}
	}
	info, stamp, err := s.base.Lstat(path)
	if err != nil && !isAbsent(err) {
		return Info{}, false, err
	}
	if err != nil {
		info, stamp = Info{}, Stamp{}
	}
	if _, known := s.stamps[path]; !known {
		s.stamps[path] = stamp
		s.held += cost
	}
	return info, stamp.Exists, nil
}

// isAbsent reports whether the error of a look-up means that there is nothing.
func isAbsent(err error) bool {
	return errors.Is(err, capabilities.ENOENT) || errors.Is(err, capabilities.ENOTDIR)
}

// stamp returns the stamp of a path whose directory is one in the base.
func (s *notes) stamp(path string) (Stamp, error) {
	if st, ok := s.stamps[path]; ok {
		return st, nil
	}
	if s.unlisted(split(path)) {
		return Stamp{}, nil
	}
	if _, _, err := s.look(path); err != nil {
		return Stamp{}, err
	}
	return s.stamps[path], nil
}

// at returns the stamp of any path, passing through directories only.
func (s *notes) at(path string) (Stamp, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		up, err := s.stamp(path[:i])
		if err != nil || !up.Exists || up.Kind != Dir {
			return Stamp{}, err
		}
	}
	return s.stamp(path)
}

// unlisted reports whether a listing that was seen says that dir has no such
// name. The host's own names are never there.
func (s *notes) unlisted(dir, name string) bool {
	if dir == "." && reserved(name) {
		return true
	}
	list, ok := s.lists[dir]
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(list, name, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	return !found
}

// list returns the names of a directory of the base, sorted, without the
// host's own.
func (s *notes) list(dir string) ([]Entry, error) {
	if list, ok := s.lists[dir]; ok {
		return list, nil
	}
	list, err := s.base.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if dir == "." {
		list = slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return reserved(e.Name) })
	}
	s.lists[dir] = list
	return list, nil
}

// guards returns what must still hold when the call's change is applied.
func (s *notes) guards() ([]Guard, []Listing) {
	guards := make([]Guard, 0, len(s.stamps))
	for _, p := range slices.Sorted(maps.Keys(s.stamps)) {
		guards = append(guards, Guard{Path: p, Stamp: s.stamps[p]})
	}
	var listings []Listing
	for _, p := range slices.Sorted(maps.Keys(s.lists)) {
		listings = append(listings, Listing{Path: p, Digest: ListingDigest(p, s.lists[p])})
	}
	return guards, listings
}
