package image

// space is where the bytes of a memory are. reach is the largest size that the
// guest had since pages were dropped last.
type space interface {
	// bytes returns the first size bytes, or nil where the system has no more.
	// What was never handed out is zero.
	bytes(size uint64) []byte
	// adopt drops what was written and becomes the image.
	adopt(reach uint64) error
	// reset becomes the image again, with zeroes above it.
	reset(reach uint64) (outcome, error)
	// trim gives back what a memory that was put back has of its own.
	trim(reach uint64) (outcome, error)
	// moved reports whether the address is another than that of the last bytes.
	moved() bool
	// held returns the bytes that the space has of its own whatever was written.
	held() uint64
	release() error
}

// outcome is what putting back did.
type outcome struct {
	changed int    // pages that differed from the image
	private uint64 // bytes of its own that are left
	dropped bool   // all pages of its own were given back
}

// system is what was found to work here.
type system struct {
	methods []Method // the fastest first
	image   func(memory []byte) (*Image, error)
	space   func(limit, least uint64) (space, error)
}

// plain is a system without mappings.
func plain() system {
	return system{
		methods: heapMethods,
		image:   heapImage,
		space:   func(limit, least uint64) (space, error) { return newHeap(nil, "", limit), nil },
	}
}
