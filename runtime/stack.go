package runtime

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// maxStack is how large a stack, in bytes, the engine may keep for a function of an
// instance that waits for a call. It begins with 10 KiB, doubles when a guest calls
// deeper, up to 100 MB, and never shrinks. Programs that are no deeper than others
// find it as they left it.
const maxStack = 256 << 10

// stackOf returns what the engine keeps as the stack of a function. What is looked up
// is an object of its own each time, with a stack of its own, of which the engine tells
// nothing: this finds the field that has it, whose length is all that is read. It
// is not valid where there is no such field.
func stackOf(f api.Function) reflect.Value {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	stack := v.Elem().FieldByName("stack")
	if !stack.IsValid() || stack.Type() != reflect.TypeFor[[]byte]() {
		return reflect.Value{}
	}
	return stack
}

// watch finds the stacks of the functions that calls use.
func (x *exports) watch() {
	x.stacks = x.stacks[:0]
	for _, f := range [...]api.Function{x.start, x.alloc, x.call, x.reseed, x.entered} {
		if f != nil {
			x.stacks = append(x.stacks, stackOf(f))
		}
	}
}

// fold looks up again the functions that calls use where the stack of one has become
// large, or is not known, and notes what they have. No call may be in flight.
func (i *Instance) fold(f *factory) {
	i.stacks = 0
	for _, s := range i.exports.stacks {
		if !s.IsValid() || s.Len() > maxStack {
			i.lookUp(f)
			i.stacks = 0
			return
		}
		i.stacks += uint64(s.Len())
	}
}
