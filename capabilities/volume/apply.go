package volume

import (
	"context"
	"fmt"
)

// Apply makes the change durable as a whole or not at all. It returns
// [ErrConflict] when a guard of the change no longer holds, EINVAL for a change
// that no overlay makes, [ErrTorn] when a change that failed could not be taken
// back, and the errors of the file system by their name. A process that is killed
// in the middle leaves a part of it, see the package's comment: who keeps intents
// stages, commits and publishes instead.
//
// New contents are prepared in a stage, a folder in the volume's root whose name
// the host reserves; what is replaced or removed is moved there, and moved back
// when anything fails. What replaces a file takes its mode, its owner as far as
// the host allows, and its extended attributes. On Linux those that begin with
// "user." and POSIX access control lists are kept, or the change is refused with an
// [*AttributeError]; labels ("security.") are kept where the host lets them be set,
// and what gives a program privileges goes with the content that had them. On macOS
// access control lists are not kept, elsewhere nothing is. A file with other names (hard links) is replaced and not changed, so
// that they go on leading to the old one; where the system does not tell of them
// (Windows), setting the times of a file, or moving it over another, shows through
// them too.
func (h *HostDir) Apply(ctx context.Context, c *Change) error {
	s, err := h.Stage(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Lock(ctx); err != nil {
		return err
	}
	return s.Publish(ctx)
}

// application is a change on its way into a stage.
type application struct {
	host   *HostDir
	disk   disk
	change *Change
	stage  string
	parts  int // names used in the stage

	guards  map[string]Stamp
	vacated map[string]bool // paths whose file goes away
	sources map[string]bool // those of them that are moved elsewhere
	staged  map[int]int     // by step: the part that was prepared, or 0 for what is moved
}

func newApplication(h *HostDir, c *Change, stage string) *application {
	a := &application{
		host: h, disk: h.disk, change: c, stage: stage,
		guards: map[string]Stamp{}, vacated: map[string]bool{}, sources: map[string]bool{}, staged: map[int]int{},
	}
	for _, g := range c.Guards {
		a.guards[g.Path] = g.Stamp
	}
	for _, s := range c.Steps {
		switch s.Action {
		case ActRemove:
			a.vacated[s.Path] = true
		case ActPut, ActLink:
			a.vacated[s.Path] = a.vacated[s.Path] || s.Base != s.Path
		case ActMkdir, ActTimes:
		}
	}
	return a
}

// known reports whether the call saw a file at a path.
func (a *application) known(path string) bool {
	st := a.guards[path]
	return st.Exists && st.Kind == File
}

// next returns the number of a new part.
func (a *application) next() int {
	a.parts++
	return a.parts
}

// newName returns the name of a part that was prepared.
func (a *application) newName(part int) string { return partName(a.stage, newPart, part) }

func partName(stage, prefix string, part int) string {
	return fmt.Sprintf("%s/%s%d", stage, prefix, part)
}
