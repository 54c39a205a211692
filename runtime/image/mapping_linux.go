package image

import "errors"

// mapped is a memory at one address. What of the image is not zero is a private
// mapping of its file, the rest is without a file, and what was not used yet is
// reserved only.
type mapped struct {
	kernel   kernel
	backing  *mappedBacking // nil: no image
	contents *contents
	method   Method
	keep     uint64
	area     area
	usable   uint64 // bytes that are open
	lost     bool   // what is at the start of the area is not known
	finder   *finder
	private  uint64 // bytes of its own, as far as they are known
	waste    uint64 // bytes of its own that resets found unchanged, since the last drop
}

var errNoMore = errors.New("memory image: the system has no more memory")

func newMapped(k kernel, limit, least uint64) (*mapped, error) {
	a, err := k.reserve(max(limit, wasmPage))
	if err != nil {
		return nil, err
	}
	s := &mapped{kernel: k, area: a}
	if s.bytes(least) == nil {
		return nil, errors.Join(errNoMore, k.release(a, 0))
	}
	return s, nil
}

func (s *mapped) bytes(size uint64) []byte {
	if size > s.usable {
		if s.kernel.open(s.area, s.usable, size) != nil {
			return nil
		}
		s.usable = size
	}
	return s.area.bytes(0, size)
}

func (s *mapped) adopt(reach uint64) error {
	if end := s.contents.end; end > 0 {
		if err := s.kernel.overlay(s.area, s.backing.file, end); err != nil {
			s.lost = true
			return err
		}
	}
	s.private, s.waste = 0, 0
	s.clear(s.contents.end, reach)
	return nil
}

// clear drops what was written to [from, to), none of which crosses the end of
// the file, or writes it where pages cannot be dropped because they are locked.
func (s *mapped) clear(from, to uint64) {
	if from < to && s.kernel.drop(s.area, from, to) != nil {
		s.private += uint64(s.contents.restore(s.area.bytes(0, s.usable), from, to)) * s.contents.page
	}
}

// drop gives back all pages of its own.
func (s *mapped) drop(reach uint64) {
	s.private, s.waste = 0, 0
	s.clear(0, s.contents.end)
	s.clear(s.contents.end, reach)
}

func (s *mapped) trim(reach uint64) (outcome, error) {
	s.drop(reach)
	return outcome{private: s.private, dropped: true}, nil
}

func (s *mapped) reset(reach uint64) (outcome, error) {
	c := s.contents
	var o outcome
	switch s.method {
	case MethodScan, MethodPagemap:
		return s.resetFound(reach)
	case MethodCompare:
		o.changed = c.restore(s.area.bytes(0, s.usable), 0, c.size)
		s.private = min(s.private+uint64(o.changed)*c.page, c.size)
		s.clear(c.size, reach)
	case MethodCopy:
		o.changed = int(c.end / c.page)
		c.overwrite(s.area.bytes(0, s.usable), 0, c.end)
		s.private = c.end
		s.clear(c.end, reach)
	}
	return s.kept(o, reach), nil
}

// resetFound restores the pages of its own. They stay its own, and are found
// again by every later reset, until they are dropped.
func (s *mapped) resetFound(reach uint64) (o outcome, err error) {
	memory := s.area.bytes(0, s.usable)
	s.private = 0
	for at := uint64(0); at < reach; {
		regions, next, err := s.finder.find(s.kernel, s.backing.pagemap, s.area, at, reach, s.contents.page)
		if err != nil {
			return o, err
		}
		if next <= at {
			return o, errors.New("memory image: the kernel did not go on with its list of pages")
		}
		for _, r := range regions {
			if !r.shared {
				s.private += r.to - r.from
			}
			if s.private > s.keep {
				o.changed += int((r.to - r.from) / s.contents.page)
				return s.kept(o, reach), nil
			}
			o.changed += s.contents.restore(memory, r.from, r.to)
		}
		at = next
	}
	if changed := uint64(o.changed) * s.contents.page; s.private > changed {
		s.waste += s.private - changed
	}
	return s.kept(o, reach), nil
}

// To have a page copied by the kernel again takes about as long as to find
// refault pages unchanged. So pages are dropped once they were found in vain
// that often: at most twice the time is spent that would have been best. Few
// pages are not worth it.
const (
	refault = 24
	few     = 128 << 10 // bytes
)

// kept drops the pages of its own where they are too many or not needed.
func (s *mapped) kept(o outcome, reach uint64) outcome {
	if s.private > s.keep || s.private > few && s.waste > refault*s.private {
		s.drop(reach)
		o.dropped = true
	}
	o.private = s.private
	return o
}

func (s *mapped) moved() bool { return false }

func (s *mapped) held() uint64 { return 0 }

func (s *mapped) release() error {
	if s.lost {
		// The addresses before the end of the file may be somebody else's by now.
		return s.kernel.release(s.area, s.contents.end)
	}
	return s.kernel.release(s.area, 0)
}
