package volume

import (
	"bytes"
	"maps"
	"os"

	"github.com/sandboxd/sandboxd/capabilities"
)

// attributes are what a file has besides content, mode and times.
type attributes struct {
	owner    owner
	owned    bool // the system tells of owners
	extended map[string][]byte
}

// attributeUse says what becomes of an extended attribute when a file is replaced.
type attributeUse uint8

const (
	attributeDropped attributeUse = iota // it is of the old content, or the host's own
	attributeTried                       // kept where the host allows it
	attributeKept                        // kept, or the file is not replaced
)

// attributes returns those of a file or directory. EACCES where its extended
// attributes cannot be read, and might have to be kept.
func (h *HostDir) attributes(name string) (attributes, error) {
	path, err := h.disk.on("attributes", name)
	if err != nil {
		return attributes{}, err
	}
	f, err := openAttributes(h.root, path)
	if err != nil {
		return attributes{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return attributes{}, err
	}
	a := attributes{}
	a.owner, a.owned = ownerOf(fi)
	a.extended, err = readAttributes(f)
	return a, err
}

// equal reports whether nothing would have to be kept of one that the other has
// not.
func (a attributes) equal(b attributes) bool {
	return a.owner == b.owner && maps.EqualFunc(a.extended, b.extended, bytes.Equal)
}

// give gives a new file attributes, and takes away those that it has inherited.
// The owner comes first: to change it takes away others. The mode has to come
// after.
func (a attributes) give(d disk, f *os.File) error {
	if a.owned {
		a.owner.give(f)
	}
	has, err := readAttributes(f)
	if err != nil {
		return err
	}
	for name := range has {
		if _, due := a.extended[name]; !due && useOf(name) == attributeKept {
			if err := removeAttribute(f, name); err != nil {
				return &AttributeError{name, err}
			}
		}
	}
	for name, value := range a.extended {
		if is, ok := has[name]; ok && bytes.Equal(is, value) {
			continue
		}
		err := d.hit("attribute", name)
		if err == nil {
			err = writeAttribute(f, name, value)
		}
		if err != nil && useOf(name) == attributeKept {
			return &AttributeError{name, err}
		}
	}
	return nil
}

// AttributeError says which extended attribute of a file cannot be kept when the
// file is replaced. The change is refused then: an access control list must not
// get lost.
type AttributeError struct {
	Name  string
	Cause error // of the system
}

// Error names the attribute.
func (e *AttributeError) Error() string {
	return "extended attribute " + e.Name + " cannot be kept: " + e.Cause.Error()
}

// Unwrap returns EPERM and the cause.
func (e *AttributeError) Unwrap() []error { return []error{capabilities.EPERM, e.Cause} }
