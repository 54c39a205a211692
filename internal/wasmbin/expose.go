package wasmbin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// globalPrefix begins the names under which mutable globals are exported.
const globalPrefix = EngineModule + ".global."

// maxExposed is the largest number of mutable globals of a module that can be
// imaged: all are set after every call.
const maxExposed = 1000

// Imaging says whether an instance of a module can be put back to what it was at
// an earlier moment, and what belongs to that.
type Imaging struct {
	// Globals are the mutable globals that the module declares, in their order.
	// There are none where it cannot be imaged.
	Globals []Global
	// MaxMemory is the maximum of the memory that the module itself declares, in
	// bytes; 0 where it declares none.
	MaxMemory uint64
	// Unimageable is why it cannot be imaged, nil where it can.
	Unimageable *UnimageableError
}

// Global is a mutable global of a module.
type Global struct {
	Index uint32
	Type  ValueType
}

// Name returns the name under which the global is exported.
func (g Global) Name() string { return globalPrefix + strconv.FormatUint(uint64(g.Index), 10) }

// Unimageable is the reason why an instance of a module cannot be put back to
// what it was, as a label of metrics. It is empty where it can.
type Unimageable string

// The reasons. What an instance has besides one memory and its mutable globals
// cannot be read or set from outside.
const (
	NoMemory       Unimageable = "no memory"
	ManyMemories   Unimageable = "several memories"
	ImportedState  Unimageable = "imported state"    // a memory, a table or a mutable global
	TableChanged   Unimageable = "table changed"     // an instruction writes to a table
	SegmentDropped Unimageable = "segment dropped"   // an instruction drops a segment
	GlobalType     Unimageable = "type of a global"  // a mutable one is a vector or a reference
	ManyGlobals    Unimageable = "number of globals" // of mutable ones
)

// UnimageableError is why a module cannot be imaged.
type UnimageableError struct {
	Why    Unimageable
	Detail string // the thing, for example "table.set in function 7"
}

// Error returns one line that names the reason and the thing.
func (e *UnimageableError) Error() string {
	return fmt.Sprintf("WebAssembly module cannot be imaged: %s: %s", e.Why, e.Detail)
}

// stateful are the instructions that change what is neither memory nor global.
var stateful = map[byte]map[uint32]struct {
	name string
	why  Unimageable
}{
	opTableSet: {0: {"table.set", TableChanged}},
	opBulk: {
		9:  {"data.drop", SegmentDropped},
		12: {"table.init", TableChanged},
		13: {"elem.drop", SegmentDropped},
		14: {"table.copy", TableChanged},
		15: {"table.grow", TableChanged},
		17: {"table.fill", TableChanged},
	},
}

// imaging asks whether the module can be imaged.
func (p *parser) imaging() (Imaging, error) {
	var i Imaging
	if ms := p.module.Memories; len(ms) > 0 && ms[0].Limits.HasMax {
		i.MaxMemory = uint64(ms[0].Limits.Max) << 16
	}
	list, err := p.imageable()
	if no, ok := errors.AsType[*UnimageableError](err); ok {
		i.Unimageable = no
		return i, nil
	}
	i.Globals = list
	return i, err
}

// imageable returns the mutable globals of a module of which memory and mutable
// globals are all the state, and a [*UnimageableError] where there is more.
func (p *parser) imageable() ([]Global, error) {
	no := func(why Unimageable, format string, args ...any) ([]Global, error) {
		return nil, &UnimageableError{Why: why, Detail: fmt.Sprintf(format, args...)}
	}
	switch n := len(p.module.Memories); {
	case n == 0:
		return no(NoMemory, "it declares none")
	case n > 1:
		return no(ManyMemories, "it has %d", n)
	case p.module.Memories[0].Limits.HasMax && p.module.Memories[0].Limits.Max == 0:
		return no(NoMemory, "its maximum is 0 pages")
	}
	for _, im := range p.module.Imports {
		switch im.Kind {
		case KindFunc:
		case KindTable, KindMemory:
			return no(ImportedState, "%s %.60q of %.60q", im.Kind, im.Name, im.Module)
		case KindGlobal:
			if im.Mutable {
				return no(ImportedState, "mutable global %.60q of %.60q", im.Name, im.Module)
			}
		}
	}
	if p.mutables > maxExposed {
		return no(ManyGlobals, "%d are mutable, at most %d can be put back", p.mutables, maxExposed)
	}
	list, err := p.mutableGlobals()
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		switch g.Type {
		case I32, I64, F32, F64:
		case V128, FuncRef, ExternRef:
			return no(GlobalType, "mutable global %d is %s", g.Index, g.Type)
		}
	}
	if err := p.stateful(); err != nil {
		return nil, err
	}
	return list, nil
}

// mutableGlobals lists the mutable globals that the module declares.
func (p *parser) mutableGlobals() (list []Global, err error) {
	index := uint32(0)
	for _, im := range p.module.Imports {
		if im.Kind == KindGlobal {
			index++
		}
	}
	for _, s := range p.sections {
		if s.id != sectionGlobal {
			continue
		}
		r := &reader{b: s.body, base: s.off}
		for range r.count("globals", maxGlobals) {
			g := Global{Index: index, Type: valueType(r)}
			if mutable(r) {
				list = append(list, g)
			}
			constant(r)
			index++
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return list, nil
}

// stateful looks for instructions that change what is neither memory nor global.
func (p *parser) stateful() error {
	imported := len(p.funcs) - p.module.Functions
	for _, s := range p.sections {
		if s.id != sectionCode {
			continue
		}
		r := &reader{b: s.body, base: s.off}
		for i := range r.count("function bodies", maxFuncs) {
			f := r.sub(uint64(r.u32()))
			localDecls(f)
			var found error
			walk(f, func(_ int, op byte, sub uint32) {
				if in, ok := stateful[op][sub]; ok && found == nil {
					found = &UnimageableError{Why: in.why, Detail: fmt.Sprintf("%s in function %d", in.name, imported+i)}
				}
			})
			if r.err == nil {
				r.err = f.err
			}
			if r.err != nil {
				return r.err
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// liftMaximum returns the memory section with the largest maximum there is. An
// engine refuses to grow a memory beyond its maximum before it asks for the
// memory, but a memory is made smaller on the way of one that grows.
func liftMaximum(r *reader) []byte {
	n := r.count("memories", maxMemories)
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		l := memoryLimits(r)
		out = append(out, 1)
		out = binary.AppendUvarint(out, uint64(l.Min))
		out = binary.AppendUvarint(out, memoryPages)
	}
	return out
}
