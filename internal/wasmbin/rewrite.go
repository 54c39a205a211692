package wasmbin

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// What [Rewrite] adds to a module.
const (
	EngineModule   = "sandboxd_engine"         // import module of the engine itself, which no author's module may import
	CheckpointName = "checkpoint"              // function of EngineModule: see [Rewrite]
	CounterExport  = "sandboxd_engine.counter" // export of the global that counts down
)

// Options bound what a rewritten module may declare. The zero value allows
// neither memory nor tables.
type Options struct {
	MaxMemory uint32 // pages of 64 KiB that a memory may start with
	MaxTables int    // tables, imported ones included
	MaxTable  uint32 // entries that a table may have, also after it grew
}

// Rewritten is a module that a host can interrupt and bound.
type Rewritten struct {
	Module []byte
	Imaging
}

// Rewrite rewrites a module so that a host can interrupt, bound and meter it.
//
// A global of type i64, exported as [CounterExport], counts down what the code
// weighs, about 1 for a plain instruction; see plan for where. Below zero the
// code calls the function [CheckpointName] of [EngineModule], which the module
// imports last: it gets the counter and returns what the counter is set to, or
// stops the guest. The same module takes the same weight for the same inputs.
// As the function is a new import, all functions of the module's own have an
// index that is higher by one.
//
// A module that can be imaged, see [Imaging], exports its mutable globals under
// [Global.Name], and its memory has the largest maximum there is: the host has to
// hold it to its own.
//
// Each table gets a maximum of at most MaxTable entries. What is not valid does
// not become valid: an index is one of the module as it was. Offsets of code in
// debug sections no longer fit. Errors are those of [Parse], a [*FormatError]
// for instructions beyond the core specification 2.0 and for indices that do
// not exist, a [*ReservedError], and a [*LimitError] where the module declares
// more than o allows.
func Rewrite(b []byte, o Options) (Rewritten, error) {
	p, err := parse(b)
	if err != nil {
		return Rewritten{}, err
	}
	if err := p.within(o); err != nil {
		return Rewritten{}, err
	}
	w := newRewriter(p, o)
	if err := w.reserved(); err != nil {
		return Rewritten{}, err
	}
	if w.imaging, err = p.imaging(); err != nil {
		return Rewritten{}, err
	}
	out, err := w.module(b)
	if err != nil {
		return Rewritten{}, err
	}
	return Rewritten{Module: out, Imaging: w.imaging}, nil
}

// rewriter makes a module of another one.
type rewriter struct {
	p        *parser
	o        Options
	imported uint32 // functions that the module imports: the index of the checkpoint
	counter  uint32 // index of the global
	kind     int    // index of the type of the checkpoint
	declared []bool // functions that are referred to outside of code
	imaging  Imaging
	light    []uint8 // what functions weigh that have no check
	scratch  []byte  // reused
	edits    []edit  // reused
}

func newRewriter(p *parser, o Options) *rewriter {
	w := &rewriter{p: p, o: o, declared: make([]bool, len(p.funcs)), imported: uint32(len(p.funcs) - p.module.Functions), counter: uint32(p.globals)}
	w.kind = len(p.types)
	for i, t := range p.types {
		if len(t.Params) == 1 && t.Params[0] == I64 && len(t.Results) == 1 && t.Results[0] == I64 {
			w.kind = i
			break
		}
	}
	return w
}

// reserved refuses a module that has what is the engine's already.
func (w *rewriter) reserved() error {
	for _, i := range w.p.module.Imports {
		if i.Module == EngineModule {
			return &ReservedError{What: "import", Name: i.Module + "." + i.Name}
		}
	}
	for _, e := range w.p.module.Exports {
		if strings.HasPrefix(e.Name, EngineModule+".") {
			return &ReservedError{What: "export", Name: e.Name}
		}
	}
	return nil
}

// within checks what the module declares against the options.
func (p *parser) within(o Options) error {
	for _, m := range p.module.Memories {
		if m.Limits.Min > o.MaxMemory {
			return &LimitError{What: "memory pages", Have: uint64(m.Limits.Min), Max: uint64(o.MaxMemory)}
		}
	}
	if n := len(p.module.Tables); n > o.MaxTables {
		return &LimitError{What: "tables", Have: uint64(n), Max: uint64(max(0, o.MaxTables))}
	}
	for _, t := range p.module.Tables {
		if t.Limits.Min > o.MaxTable {
			return &LimitError{What: "table entries", Have: uint64(t.Limits.Min), Max: uint64(o.MaxTable)}
		}
	}
	return nil
}

// added are the sections that get more entries, in their order in a module.
var added = []byte{sectionType, sectionImport, sectionGlobal, sectionExport}

// module returns the rewritten module: every section in its place, and those
// that were not there and have an entry now in theirs.
func (w *rewriter) module(b []byte) ([]byte, error) {
	out := make([]byte, 0, len(b)+len(b)/4)
	out = append(out, b[:len(header)]...)
	missing := added
	for _, s := range w.p.sections {
		for s.id != sectionCustom && len(missing) > 0 && order(missing[0]) <= order(s.id) {
			if missing[0] != s.id {
				out = appendSection(out, missing[0], w.entries(missing[0], nil))
			}
			missing = missing[1:]
		}
		body, err := w.section(s)
		if err != nil {
			return nil, err
		}
		if body == nil {
			out = append(out, b[s.start:s.off+len(s.body)]...)
			continue
		}
		out = appendSection(out, s.id, body)
	}
	for _, id := range missing {
		out = appendSection(out, id, w.entries(id, nil))
	}
	return out, nil
}

func appendSection(out []byte, id byte, body []byte) []byte {
	out = append(out, id)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...)
}

// section returns the body of a section, nil where it stays as it is.
func (w *rewriter) section(s section) (body []byte, err error) {
	r := &reader{b: s.body, base: s.off}
	switch s.id {
	case sectionCustom:
		body = w.custom(r)
	case sectionType, sectionImport:
		body = w.entries(s.id, s.body)
	case sectionTable:
		body = capTables(r, w.o.MaxTable)
	case sectionMemory:
		if w.imaging.Unimageable == nil {
			body = liftMaximum(r)
		}
	case sectionGlobal:
		body = w.entries(s.id, w.globals(r))
	case sectionExport:
		body = w.entries(s.id, w.exports(r))
	case sectionStart:
		body = binary.AppendUvarint(nil, uint64(w.function(r)))
	case sectionElement:
		body = w.elements(r)
	case sectionData:
		body = w.data(r)
	case sectionCode:
		body = w.code(r)
	}
	return body, r.err
}

// entries returns the vector b, nil for an empty one, with what is added to
// such a section.
func (w *rewriter) entries(id byte, b []byte) []byte {
	var more [][]byte
	switch id {
	case sectionType:
		if w.kind == len(w.p.types) {
			more = append(more, []byte{0x60, 1, byte(I64), 1, byte(I64)})
		}
	case sectionImport:
		e := appendName(appendName(nil, EngineModule), CheckpointName)
		more = append(more, binary.AppendUvarint(append(e, byte(KindFunc)), uint64(w.kind)))
	case sectionGlobal:
		more = append(more, []byte{byte(I64), 1, opI64Const, 0, opEnd})
		more = append(more, w.references()...)
	case sectionExport:
		more = append(more, binary.AppendUvarint(append(appendName(nil, CounterExport), byte(KindGlobal)), uint64(w.counter)))
		for _, g := range w.imaging.Globals {
			more = append(more, binary.AppendUvarint(append(appendName(nil, g.Name()), byte(KindGlobal)), uint64(g.Index)))
		}
	}
	r := &reader{b: b}
	n := uint64(0)
	if len(b) > 0 {
		n = uint64(r.u32())
	}
	out := make([]byte, 0, len(b)+64*len(more))
	out = binary.AppendUvarint(out, n+uint64(len(more)))
	out = append(out, b[r.pos:]...)
	for _, e := range more {
		out = append(out, e...)
	}
	return out
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// capTables returns the table section with no maximum above most.
func capTables(r *reader, most uint32) (out []byte) {
	n := r.count("tables", maxTables)
	out = binary.AppendUvarint(out, uint64(n))
	for range n {
		elem := refType(r)
		l := limits(r)
		if !l.HasMax || l.Max > most {
			l.Max = most
		}
		out = append(out, byte(elem), 1)
		out = binary.AppendUvarint(out, uint64(l.Min))
		out = binary.AppendUvarint(out, uint64(l.Max))
	}
	return out
}

// ErrReserved is matched under errors.Is by every [*ReservedError].
var ErrReserved = fmt.Errorf("WebAssembly module uses what is %s's own", EngineModule)

// ReservedError is an import or an export that only [Rewrite] may add.
type ReservedError struct{ What, Name string }

// Error names it.
func (e *ReservedError) Error() string {
	return fmt.Sprintf("%s %q is reserved for the engine: leave it out, or rename it", e.What, e.Name)
}

// Is reports whether target is [ErrReserved].
func (e *ReservedError) Is(target error) bool { return target == ErrReserved }
