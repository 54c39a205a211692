package files

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Times are the times to set on a file. A zero time is left as it is. Access
// times are accepted and not kept: they are no environment.
type Times struct {
	Access time.Time
	Modify time.Time
}

func (t Times) empty() bool { return t.Access.IsZero() && t.Modify.IsZero() }

// Stat describes the open file.
func (h *Handle) Stat() (volume.Info, error) {
	if err := h.live(capabilities.OpRead); err != nil {
		return volume.Info{}, err
	}
	return h.info(h.node)
}

// StatPath describes the file at path; with follow, the one a link leads to.
func (h *Handle) StatPath(path string, follow bool) (volume.Info, error) {
	p, err := h.find(path, follow, capabilities.OpRead)
	if err != nil {
		return volume.Info{}, err
	}
	return h.info(p.Node)
}

// SetTimes sets the times of the open file. It needs no handle that can write,
// only a volume that the tool may write.
func (h *Handle) SetTimes(t Times) error {
	if err := h.live(capabilities.OpSetTimes); err != nil {
		return err
	}
	return h.setTimes(h.node, t)
}

// SetTimesPath sets the times of the file at path; with follow, of the one a
// link leads to.
func (h *Handle) SetTimesPath(path string, follow bool, t Times) error {
	p, err := h.find(path, follow, capabilities.OpSetTimes)
	if err != nil {
		return err
	}
	return h.setTimes(p.Node, t)
}

func (h *Handle) setTimes(n *volume.Node, t Times) error {
	switch {
	case t.empty():
		return nil
	case n.Kind() != volume.File && n.Kind() != volume.Dir:
		return capabilities.ENOTSUP
	}
	object := h.volume.object(n)
	if err := h.volume.attempt(capabilities.OpSetTimes, object); err != nil {
		return err
	}
	if t.Modify.IsZero() {
		return nil
	}
	if err := h.volume.tree.SetTimes(n, t.Modify); err != nil {
		return h.volume.translate(err, capabilities.OpSetTimes, object)
	}
	return nil
}

// find resolves a path to a file that exists; ENOENT when there is none.
func (h *Handle) find(path string, follow bool, op capabilities.Operation) (volume.Place, error) {
	p, err := h.walk(path, follow, op)
	if err == nil && p.Node == nil {
		err = capabilities.ENOENT
	}
	return p, err
}

func (h *Handle) info(n *volume.Node) (volume.Info, error) {
	i, err := h.volume.tree.Info(n)
	if err != nil {
		return volume.Info{}, h.volume.translate(err, capabilities.OpRead, h.volume.object(n))
	}
	return i, nil
}
