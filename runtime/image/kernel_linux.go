package image

// kernel is what a mapped memory asks of Linux. Offsets are in bytes from the
// start of an area, and multiples of the page's size.
type kernel interface {
	// file returns a sealed file in memory that holds those pages of a memory that
	// are filled.
	file(memory []byte, c *contents) (fd int, err error)
	// view maps the first size bytes of a file, to be read.
	view(fd int, size uint64) ([]byte, error)
	unview(view []byte) error
	// pagemap opens /proc/self/pagemap.
	pagemap() (fd int, err error)
	close(fd int) error

	// reserve takes size addresses without memory.
	reserve(size uint64) (area, error)
	// open makes addresses usable.
	open(a area, from, to uint64) error
	// overlay puts a private mapping of the start of a file in the place of what is there.
	overlay(a area, fd int, size uint64) error
	// drop gives back the pages of [from, to), which are then zero, or those of the file.
	drop(a area, from, to uint64) error
	// scan lists the pages of [from, to) that are neither of a file nor of the
	// zeroes that all share, and returns how many regions of them it put into the
	// buffer, which is on the heap, and where it ended.
	scan(pagemap int, a area, from, to uint64, b *scanBuffer) (n int, end uint64, err error)
	// entries reads the entries of the pages from an offset on.
	entries(pagemap int, a area, from uint64, entries []uint64) error
	// release takes back the addresses of an area from an offset on.
	release(a area, from uint64) error
}
