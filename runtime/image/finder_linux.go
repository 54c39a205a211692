package image

import "fmt"

// region is a row of pages, in bytes from the start of the memory.
type region struct {
	from, to uint64
	shared   bool // it may be the page of zeroes that all share
}

// finder lists the pages of a memory that are its own.
type finder struct {
	method  Method
	regions [64]region
	scanned scanBuffer
	entries []uint64
}

// newFinder returns nil for the methods that look at every page.
func newFinder(m Method) *finder {
	switch m {
	case MethodScan:
		return &finder{method: m}
	case MethodPagemap:
		return &finder{method: m, entries: make([]uint64, 1024)}
	case MethodCompare, MethodCopy:
	}
	return nil
}

// find returns regions of [from, to) that are the memory's own, and where to go on.
// It may return pages that were only read, and never leaves out one that was written.
func (f *finder) find(k kernel, pagemap int, a area, from, to, page uint64) ([]region, uint64, error) {
	if f.method == MethodPagemap {
		return f.read(k, pagemap, a, from, to, page)
	}
	n, next, err := k.scan(pagemap, a, from, to, &f.scanned)
	if err != nil {
		return nil, 0, err
	}
	if n > len(f.regions) {
		return nil, 0, fmt.Errorf("memory image: the kernel lists %d regions where %d were asked for", n, len(f.regions))
	}
	for i := range n {
		from, to := f.scanned.region(i)
		f.regions[i] = region{from: from, to: to}
	}
	return f.regions[:n], next, nil
}

// Of Documentation/admin-guide/mm/pagemap.rst.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
	entryFile    = 1 << 61
	entryOwn     = 1 << 56 // mapped here only
)

func (f *finder) read(k kernel, pagemap int, a area, from, to, page uint64) ([]region, uint64, error) {
	entries := f.entries[:min(uint64(len(f.entries)), (to-from)/page)]
	if err := k.entries(pagemap, a, from, entries); err != nil {
		return nil, 0, err
	}
	n := 0
	for i, e := range entries {
		if e&(entryPresent|entrySwapped) == 0 || e&entryFile != 0 {
			continue
		}
		at, shared := from+uint64(i)*page, e&(entryOwn|entrySwapped) == 0
		switch {
		case n > 0 && f.regions[n-1].to == at && f.regions[n-1].shared == shared:
			f.regions[n-1].to += page
		case n == len(f.regions):
			return f.regions[:n], at, nil
		default:
			f.regions[n] = region{at, at + page, shared}
			n++
		}
	}
	return f.regions[:n], from + uint64(len(entries))*page, nil
}
