package runtime

import (
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/tool"
)

// shape is what is known of a module before it is compiled, and counts when its
// instances are put back.
type shape struct {
	globals     []string // exports of the mutable globals that it declares
	least, most uint64   // bytes of its memory, as the module declares them; most 0: it does not
	kept        uint64   // bytes of the host that each takes for what the module declares, besides memory
	reseeds     bool     // it exports a function that takes a seed
	why         Reason   // its instances cannot be put back; empty: they can
	where       string   // in the module that is
}

// guard rewrites a module so that it can always be stopped, what it runs is counted,
// its tables cannot take the host's memory, and its instances can be put back. What the
// engine validates and runs is the rewritten module.
func guard(module []byte, l tool.Limits) ([]byte, shape, error) {
	r, err := wasmbin.Rewrite(module, wasmbin.Options{
		MaxTable:  maxTableSize,
		MaxTables: maxTables,
		MaxMemory: uint32(l.Memory / pageBytes),
	})
	if errors.Is(err, wasmbin.ErrReserved) {
		return nil, shape{}, fmt.Errorf("%w: %w", ErrLink, err)
	}
	if err != nil {
		return nil, shape{}, err
	}
	joined, err := wasmbin.Join(r.Module)
	if err != nil {
		return nil, shape{}, err
	}
	s, err := shapeOf(module, r.Imaging)
	if err != nil {
		return nil, shape{}, err
	}
	if s.kept, err = wasmbin.Kept(joined); err == nil && s.kept > maxKept {
		err = &wasmbin.LimitError{What: "bytes of tables, globals and segments in each instance", Have: s.kept, Max: maxKept}
	}
	return joined, s, err
}

func shapeOf(module []byte, i wasmbin.Imaging) (shape, error) {
	m, err := wasmbin.Surface(module)
	if err != nil {
		return shape{}, err
	}
	s := shape{most: i.MaxMemory}
	for _, g := range i.Globals {
		s.globals = append(s.globals, g.Name())
	}
	if len(m.Memories) > 0 {
		s.least = uint64(m.Memories[0].Limits.Min) * pageBytes
	}
	for _, e := range m.ExportedFunctions() {
		s.reseeds = s.reseeds || e.Name == reseedExport
	}
	if i.Unimageable != nil {
		s.why, s.where = Reason(i.Unimageable.Why), i.Unimageable.Detail
	}
	return s, nil
}
