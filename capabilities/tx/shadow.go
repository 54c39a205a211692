package tx

import (
	"context"
	"errors"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Shadow returns a transaction on what t would leave, as if that were committed:
// its guest sees no difference. It can be prepared, and not be committed. others
// are the shadows of the other participants. t must not be used while the shadow
// is, and not be ended before it.
func (t *Tx) Shadow(others []Participant, o volume.Options) *Tx {
	p := Parts{Others: others}
	for i := range t.volumes {
		v := &t.volumes[i]
		s := Volume{Name: v.Name, Path: v.Path}
		if v.base() != nil {
			s.Tree = shadow{v.Overlay().Result()}
		}
		p.Volumes = append(p.Volumes, s)
	}
	return Begin(p, o)
}

// shadow is a tree that nobody can commit to. All that a base may offer is offered
// by it too: complete listings, the step of times.
type shadow struct{ volume.Shadow }

// Writes refuses.
func (shadow) Writes(context.Context, *volume.Change) ([]store.Guard, []store.RangeGuard, []store.Write, error) {
	return nil, nil, nil, errShadow
}

var errShadow = errors.New("a shadow cannot be committed")
