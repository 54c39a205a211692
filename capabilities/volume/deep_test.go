package volume

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// bottomless is a base in which every directory holds directories.
type bottomless struct{ Base }

func (bottomless) Lstat(string) (Info, Stamp, error) {
	return Info{Kind: Dir, Mode: newDirMode}, Stamp{Exists: true, Kind: Dir, Mode: newDirMode}, nil
}

// What is too deep for a change to name is refused when it was looked at, also where
// nothing was changed.
func TestTooDeepToName(t *testing.T) {
	o := New(bottomless{Mem()}, Options{})
	dir, name := o.Root(), strings.Repeat("d", maxName)
	for depth := 1; ; depth++ {
		p, err := o.Walk(dir, name, true)
		if err != nil || p.Node == nil {
			t.Fatal(p, err)
		}
		dir = p.Node
		_, err = o.Change()
		switch long := depth*(maxName+1)-1 > maxPath; {
		case !long && err != nil:
			t.Fatalf("%d deep: %v", depth, err)
		case long && errors.Is(err, capabilities.ENAMETOOLONG):
			return
		case long:
			t.Fatalf("%d deep: %v", depth, err)
		}
	}
}
