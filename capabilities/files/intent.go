package files

import "github.com/sandboxd/sandboxd/capabilities"

// Intent is what a guest asks for when it opens a path. The zero Intent looks
// the path up and allows nothing more.
//
// Read and Write are what is asked for in fact. Other rights that languages
// request out of habit are not part of it.
type Intent struct {
	Read      bool
	Write     bool
	Create    bool // make a regular file when there is none
	Exclusive bool // with Create: EEXIST when there is one
	Truncate  bool
	Directory bool // ENOTDIR for anything else
	Append    bool // no effect on a descriptor that cannot write
	Follow    bool // follow a symbolic link in the last place
}

// operation names the gravest thing the intent may come to, for what is
// refused before it is known whether the file exists.
func (i Intent) operation() capabilities.Operation {
	switch {
	case i.Truncate:
		return capabilities.OpTruncate
	case i.Write:
		return capabilities.OpWrite
	case i.Create:
		return capabilities.OpCreate
	}
	return capabilities.OpRead
}

// follows reports whether a link in the last place is followed. POSIX open:
// O_CREAT with O_EXCL fails on a link, wherever it leads.
func (i Intent) follows() bool {
	return i.Follow && !(i.Create && i.Exclusive)
}

// attempt returns how opening an existing file is judged, and whether it is:
// opening for reading alone is not.
func (i Intent) attempt() (capabilities.Attempt, bool) {
	switch {
	case i.Truncate:
		return capabilities.Attempt{Operation: capabilities.OpTruncate}, true
	case i.Write:
		return capabilities.Attempt{Operation: capabilities.OpWrite, Tentative: i.Read}, true
	}
	return capabilities.Attempt{}, false
}
