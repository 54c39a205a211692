package runtime

import (
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/runtime/image"
)

// state is what instances of a module are put back to: all that its code can
// change of an instance. Tables are not in it, as a module that changes them has none.
type state struct {
	image   *image.Image
	globals []uint64
	began   time.Duration // what the monotonic clock showed
}

// snapshot takes the state of an instance that is ready for its first call.
func (i *Instance) snapshot(globals []string) (*state, error) {
	s := &state{began: i.began}
	for _, name := range globals {
		g, err := i.global(name)
		if err != nil {
			return nil, err
		}
		s.globals = append(s.globals, g.Get())
	}
	memory, ok := i.module.Memory().Read(0, i.module.Memory().Size())
	if !ok {
		return nil, fmt.Errorf("memory of %d bytes cannot be read", i.module.Memory().Size())
	}
	var err error
	s.image, err = image.New(memory)
	return s, err
}

// global returns a global that the host can set.
func (i *Instance) global(name string) (api.MutableGlobal, error) {
	g, ok := i.module.ExportedGlobal(name).(api.MutableGlobal)
	if !ok {
		return nil, fmt.Errorf("global %s cannot be set", name)
	}
	return g, nil
}

// adopt makes a new instance one of the state.
func (i *Instance) adopt(s *state, globals []string) error {
	for _, name := range globals {
		g, err := i.global(name)
		if err != nil {
			return err
		}
		i.globals = append(i.globals, g)
	}
	if err := i.memory.Adopt(i.module.Memory()); err != nil {
		return err
	}
	i.setGlobals(s)
	return nil
}

// reset puts an instance back to the state after a call.
func (i *Instance) reset(s *state) error {
	if i.module.IsClosed() {
		return errClosedInstance
	}
	if _, err := i.memory.Reset(); err != nil {
		return err
	}
	i.setGlobals(s)
	return nil
}

func (i *Instance) setGlobals(s *state) {
	for k, g := range i.globals {
		g.Set(s.globals[k])
	}
}
