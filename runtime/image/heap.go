package image

import (
	"os"
	"slices"
)

var heapMethods = []Method{MethodCompare, MethodCopy}

// heapBacking keeps an image, and the memories of it, in memory of Go.
type heapBacking struct{ contents *contents }

func heapImage(memory []byte) (*Image, error) {
	c := survey(memory, min(os.Getpagesize(), wasmPage))
	c.view = slices.Clone(memory[:c.end])
	return &Image{contents: c, backing: &heapBacking{c}}, nil
}

func (b *heapBacking) methods() []Method { return heapMethods }

func (b *heapBacking) close() error { return nil }

func (b *heapBacking) space(limit uint64, m Method, keep uint64) (space, error) {
	h := newHeap(b.contents, m, limit)
	h.keep = keep
	return h, nil
}

// heap is a memory whose address changes when it grows. The garbage collector
// takes it once no call can reach it any more.
type heap struct {
	contents *contents // nil: none
	method   Method
	limit    uint64
	keep     uint64
	buf      []byte // up to its capacity, all that was never handed out is zero
	other    bool   // its address is another than that of the last bytes
}

func newHeap(c *contents, m Method, limit uint64) *heap {
	return &heap{contents: c, method: m, limit: limit, buf: []byte{}}
}

func (h *heap) bytes(size uint64) []byte {
	if size > uint64(cap(h.buf)) {
		grown := make([]byte, len(h.buf), min(h.limit, max(size, 2*uint64(cap(h.buf)))))
		copy(grown, h.buf)
		h.buf = grown
	}
	h.other = false
	h.buf = h.buf[:max(size, uint64(len(h.buf)))]
	return h.buf[:size]
}

func (h *heap) adopt(reach uint64) error {
	_, err := h.trim(reach)
	return err
}

func (h *heap) reset(reach uint64) (outcome, error) {
	c := h.contents
	if uint64(cap(h.buf)) > c.size+h.keep {
		return h.trim(reach)
	}
	var o outcome
	switch h.method {
	case MethodCopy:
		c.overwrite(h.buf, 0, c.size)
		o.changed = int(c.size / c.page)
	case MethodScan, MethodPagemap, MethodCompare:
		o.changed = c.restore(h.buf, 0, c.size)
	}
	o.changed += c.restore(h.buf, c.size, max(c.size, reach))
	return o, nil
}

// trim begins anew, in as much memory as the image needs.
func (h *heap) trim(uint64) (outcome, error) {
	h.buf = make([]byte, h.contents.size)
	h.other = true
	copy(h.buf, h.contents.view)
	return outcome{changed: int(h.contents.size / h.contents.page), dropped: true}, nil
}

func (h *heap) moved() bool { return h.other }

func (h *heap) held() uint64 { return uint64(cap(h.buf)) }

func (h *heap) release() error {
	h.buf, h.other = nil, true
	return nil
}
