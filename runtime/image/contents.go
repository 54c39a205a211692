package image

import "bytes"

// contents are the bytes of an image, by pages of the system.
type contents struct {
	size   uint64 // bytes
	page   uint64 // bytes
	end    uint64 // of the last page in which anything is not zero
	view   []byte // the first end bytes, to be read only
	filled []bool // the pages of view in which anything is not zero
	zeros  []byte // one page
}

// survey finds the pages of a memory in which anything is not zero.
func survey(memory []byte, page int) *contents {
	c := &contents{size: uint64(len(memory)), page: uint64(page), zeros: make([]byte, page)}
	c.filled = make([]bool, len(memory)/page)
	last := 0
	for p := range c.filled {
		if !bytes.Equal(memory[p*page:(p+1)*page], c.zeros) {
			c.filled[p] = true
			last = p + 1
		}
	}
	c.filled = c.filled[:last:last]
	c.end = uint64(last * page)
	return c
}

// at returns the page of the image at an offset, which is a multiple of the
// page's size. Reading an empty page of a file in memory would make the kernel
// keep it, so zeroes of our own stand for those.
func (c *contents) at(offset uint64) []byte {
	if offset < c.end && c.filled[offset/c.page] {
		return c.view[offset : offset+c.page]
	}
	return c.zeros
}

// restore writes the pages of a memory in [from, to) that differ from the image,
// beyond which all is zero, and returns how many those are.
func (c *contents) restore(memory []byte, from, to uint64) (changed int) {
	for o := from; o < to; o += c.page {
		page, want := memory[o:o+c.page], c.at(o)
		if !bytes.Equal(page, want) {
			copy(page, want)
			changed++
		}
	}
	return changed
}

// overwrite writes the pages of a memory in [from, to) without looking at them.
func (c *contents) overwrite(memory []byte, from, to uint64) {
	for o := from; o < to; o += c.page {
		copy(memory[o:o+c.page], c.at(o))
	}
}
