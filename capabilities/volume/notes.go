package volume

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

// What is remembered costs memory: a guest may look up names that do not exist
// for as long as it runs. These are bytes besides those of names, about. They are
// not given back: what was seen is held to the end.
const (
	noteCost  = 256 // per path
	foundCost = 256 // per path where there is something, for its node
	entryCost = 64  // per name of a listing
	toldCost  = 512 // per path that a change names, for its step and its effect
)

// notes remembers what a call has seen of a base. It sees each path once: what
// is seen twice is what was seen first.
type notes struct {
	base   Base
	budget *Budget
	stamps map[string]Stamp
	times  map[string]time.Time // of directories, which stamps have not
	lists  map[string]listing
}

// listing is what was seen of a directory.
type listing struct {
	entries []Entry // sorted, without the host's own
	hidden  bool    // the base has entries that cannot be shown
	more    bool    // there are entries besides those that are listed
}

// look returns what the base has at a path, and whether there is anything.
func (s *notes) look(path string) (Info, bool, error) {
	info, stamp, err := s.base.Lstat(path)
	if err != nil && !isAbsent(err) {
		return Info{}, false, err
	}
	if err != nil {
		info, stamp = Info{}, Stamp{}
	}
	if _, known := s.stamps[path]; known {
		return info, stamp.Exists, nil
	}
	c := cost{seen: int64(2*len(path) + noteCost)} // the name is held once more
	if stamp.Exists {
		c.seen += foundCost
	}
	if err := s.budget.take(c); err != nil {
		return Info{}, false, err
	}
	lazymap.Put(&s.stamps, path, stamp)
	if stamp.Exists && stamp.Kind == Dir {
		lazymap.Put(&s.times, path, info.ModTime)
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

// time returns the modification time that was seen at a path.
func (s *notes) time(path string) time.Time {
	if t, ok := s.times[path]; ok {
		return t
	}
	return s.stamps[path].ModTime
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
// name. The host's own names are never there, nor anything in an empty tree.
func (s *notes) unlisted(dir, name string) bool {
	if _, empty := s.base.(mem); empty || (dir == "." && reserved(name)) {
		return true
	}
	l, ok := s.lists[dir]
	if !ok {
		return false
	}
	_, found := slices.BinarySearchFunc(l.entries, name, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	return !found
}

// list returns the names of a directory of the base, sorted, without the
// host's own.
func (s *notes) list(dir string) ([]Entry, error) {
	l, err := s.listing(dir)
	return l.entries, err
}

func (s *notes) listing(dir string) (listing, error) {
	if l, ok := s.lists[dir]; ok {
		return l, nil
	}
	entries, hidden, err := listBase(s.base, dir)
	if err != nil {
		return listing{}, err
	}
	l := listing{entries: entries, hidden: hidden, more: hidden}
	if dir == "." {
		l.entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return reserved(e.Name) })
		l.more = hidden || len(l.entries) < len(entries)
	}
	c := cost{seen: int64(len(dir) + noteCost)}
	for _, e := range l.entries {
		c.seen += int64(len(e.Name) + entryCost)
	}
	if err := s.budget.take(c); err != nil {
		return listing{}, err
	}
	lazymap.Put(&s.lists, dir, l)
	return l, nil
}

// listBase returns the entries of a directory, and whether there are others
// that cannot be shown.
func listBase(b Base, dir string) (entries []Entry, hidden bool, err error) {
	if l, ok := b.(Lister); ok {
		return l.List(dir)
	}
	entries, err = b.ReadDir(dir)
	return entries, false, err
}

// guards returns what must still hold when the call's change is applied.
func (s *notes) guards() ([]Guard, []Listing) {
	guards := make([]Guard, 0, len(s.stamps))
	for _, p := range lazymap.Sorted(s.stamps) {
		guards = append(guards, Guard{Path: p, Stamp: s.stamps[p]})
	}
	var listings []Listing
	for _, p := range lazymap.Sorted(s.lists) {
		l := s.lists[p]
		listings = append(listings, Listing{Path: p, Digest: ListingDigest(p, l.entries), Hidden: l.hidden})
	}
	return guards, listings
}
