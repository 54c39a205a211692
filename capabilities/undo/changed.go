package undo

import "fmt"

// Difference is how something is not as the call left it.
type Difference string

// The differences.
const (
	NowGone      Difference = "is no longer there"
	NowThere     Difference = "is there again"
	OtherKind    Difference = "is of another kind"
	OtherMode    Difference = "has other permissions"
	OtherContent Difference = "has another content"
	OtherNames   Difference = "holds something else" // of a directory that the call made
)

// Changed is something that is not as the call left it.
type Changed struct {
	Volume string // empty for a key
	Object string // guest path or key
	How    Difference
}

// ChangedError lists what has changed since the call. It matches [ErrChanged].
type ChangedError struct {
	Changed []Changed // the first ones, sorted by volume and path, then by key
	More    int       // how many there are besides
}

// Error names the first change.
func (e *ChangedError) Error() string {
	if len(e.Changed) == 0 {
		return ErrChanged.Error()
	}
	c := e.Changed[0]
	return fmt.Sprintf("%v: %q %s", ErrChanged, c.Object, c.How) + others(len(e.Changed)-1+e.More)
}

// Is reports whether target is [ErrChanged].
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

func (e *ChangedError) add(volume, object string, how Difference) {
	if len(e.Changed) >= maxTold {
		e.More++
		return
	}
	e.Changed = append(e.Changed, Changed{volume, object, how})
}

func keyError(name string, err error) error { return fmt.Errorf("key %q: %w", name, err) }
