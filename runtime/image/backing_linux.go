package image

import (
	"errors"
	"os"
	"slices"
)

// mappedBacking keeps an image in a sealed file in memory.
type mappedBacking struct {
	kernel   kernel
	contents *contents
	works    []Method
	file     int // -1: the image is all zeroes
	pagemap  int // -1: not needed
}

// mappedImage returns a function that makes images whose memories can be put back by methods.
func mappedImage(k kernel, works []Method) func(memory []byte) (*Image, error) {
	return func(memory []byte) (*Image, error) {
		b := &mappedBacking{kernel: k, contents: survey(memory, os.Getpagesize()), works: works, file: -1, pagemap: -1}
		if err := b.fill(memory); err != nil {
			return nil, errors.Join(err, b.close())
		}
		return &Image{contents: b.contents, backing: b}, nil
	}
}

func (b *mappedBacking) fill(memory []byte) (err error) {
	if slices.Contains(b.works, MethodScan) || slices.Contains(b.works, MethodPagemap) {
		if b.pagemap, err = b.kernel.pagemap(); err != nil {
			return err
		}
	}
	c := b.contents
	if c.end == 0 {
		return nil
	}
	if b.file, err = b.kernel.file(memory, c); err != nil {
		return err
	}
	if c.view, err = b.kernel.view(b.file, c.end); err != nil {
		return err
	}
	// This maps the pages, too, so that no reset has to wait for that.
	for p, filled := range c.filled {
		at := uint64(p) * c.page
		if filled && string(c.view[at:at+c.page]) != string(memory[at:at+c.page]) {
			return errors.New("memory image: the file does not hold what was written to it")
		}
	}
	return nil
}

func (b *mappedBacking) methods() []Method { return b.works }

func (b *mappedBacking) close() error {
	var errs []error
	if b.contents.view != nil {
		errs = append(errs, b.kernel.unview(b.contents.view))
		b.contents.view = nil
	}
	for _, fd := range []*int{&b.file, &b.pagemap} {
		if *fd >= 0 {
			errs = append(errs, b.kernel.close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}

func (b *mappedBacking) space(limit uint64, m Method, keep uint64) (space, error) {
	s, err := newMapped(b.kernel, limit, b.contents.size)
	if err != nil {
		return nil, err
	}
	s.backing, s.contents, s.method, s.keep = b, b.contents, m, keep
	s.finder = newFinder(m)
	return s, nil
}
