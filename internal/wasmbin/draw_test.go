package wasmbin

import (
	"encoding/binary"

	"pgregory.net/rapid"
)

// drawn is a module that is drawn at random, and ends: loops count down, and
// functions call later ones only. Its functions are exported as "0", "1", …
type drawn struct {
	rt      *rapid.T
	kinds   []FuncType
	funcs   []int // types of its own functions
	globals []ValueType
	b       []byte
}

// Of what a drawn module imports, env.f of type (i32)->(i32).
const drawnImports = 1

var numeric = []ValueType{I32, I64, F32, F64}

func drawModule(rt *rapid.T) *drawn {
	d := &drawn{rt: rt, kinds: []FuncType{{Params: []ValueType{I32}, Results: []ValueType{I32}}, {}, {Params: []ValueType{I64, I32}, Results: []ValueType{I64}}}}
	if d.flip("checkpoint's type") {
		d.kinds = append(d.kinds, FuncType{Params: []ValueType{I64}, Results: []ValueType{I64}})
	}
	d.kinds = append(d.kinds, FuncType{Params: []ValueType{F64, I32, F32}, Results: []ValueType{F32}}, FuncType{Results: []ValueType{I32, I64}})
	for range d.upTo(4, "functions") + 1 {
		d.funcs = append(d.funcs, d.upTo(len(d.kinds)-1, "type"))
	}
	d.globals = []ValueType{I32}
	for range d.upTo(2, "globals") {
		d.globals = append(d.globals, numeric[d.upTo(3, "global")])
	}
	d.b = d.module()
	return d
}

func (d *drawn) upTo(n int, what string) int { return rapid.IntRange(0, n).Draw(d.rt, what) }
func (d *drawn) flip(what string) bool       { return rapid.Bool().Draw(d.rt, what) }

func (d *drawn) kind(f int) FuncType {
	if f < drawnImports {
		return d.kinds[0]
	}
	return d.kinds[d.funcs[f-drawnImports]]
}

func types(list []ValueType) string {
	var b []byte
	for _, t := range list {
		b = append(b, byte(t))
	}
	return string(b)
}

func (d *drawn) module() []byte {
	var kinds, own, exports, globals, bodies [][]byte
	for _, k := range d.kinds {
		kinds = append(kinds, functype(types(k.Params), types(k.Results)))
	}
	all := drawnImports + len(d.funcs)
	for i, k := range d.funcs {
		own = append(own, num(k))
		exports = append(exports, cat(str(string(rune('0'+i))), []byte{0}, num(drawnImports+i)))
		bodies = append(bodies, d.body(i))
	}
	exports = append(exports, cat(str("memory"), []byte{2, 0}))
	for i, t := range d.globals {
		globals = append(globals, cat([]byte{byte(t), 1}, d.constant(t), []byte{opEnd}))
		exports = append(exports, cat(str("g"+string(rune('0'+i))), []byte{3}, num(i)))
	}
	var elems []byte
	for i := range all {
		elems = append(elems, num(i)...)
	}
	sections := [][]byte{
		sec(sectionType, vec(kinds...)),
		sec(sectionImport, vec(cat(str("env"), str("f"), []byte{0, 0}))),
		sec(sectionFunction, vec(own...)),
		sec(sectionTable, vec(cat([]byte{0x70, 1}, num(all+2), num(all+3)))),
		sec(sectionMemory, vec([]byte{1, 1, 3})),
		sec(sectionGlobal, vec(globals...)),
		sec(sectionExport, vec(exports...)),
	}

	if i := d.startable(); i >= 0 && d.flip("start") {
		sections = append(sections, sec(sectionStart, num(i)))
	}
	element := cat([]byte{0, 0x41, 1, 0x0b}, num(all), elems)
	declared := cat([]byte{7, 0x70, 1, opRefFunc}, num(all-1), []byte{0x0b})
	sections = append(sections,
		sec(sectionElement, vec(element, declared)),
		sec(sectionDataCount, num(2)),
		sec(sectionCode, vec(bodies...)),
		sec(sectionData, vec(cat([]byte{0, 0x41, 8, 0x0b}, str("some data")), cat([]byte{1}, str("passive")))),
	)
	if d.flip("names") {
		sections = append(sections, custom("name", cat([]byte{1}, sized(vec(cat(num(0), str("zero")), cat(num(all-1), str("last")))))))
	}
	return mod(sections...)
}

// startable returns a function that can be the start function; -1: none.
func (d *drawn) startable() int {
	for i, k := range d.funcs {
		if k == 1 {
			return drawnImports + i
		}
	}
	return -1
}

func (d *drawn) constant(t ValueType) []byte {
	switch t {
	case I32:
		return appendSigned([]byte{opI32Const}, int64(rapid.OneOf(rapid.Int32Range(-3, 40), rapid.Int32()).Draw(d.rt, "i32")))
	case I64:
		return appendSigned([]byte{opI64Const}, rapid.OneOf(rapid.Int64Range(-3, 40), rapid.Int64()).Draw(d.rt, "i64"))
	case F32:
		return binary.LittleEndian.AppendUint32([]byte{0x43}, rapid.Uint32Range(0x3f000000, 0x47000000).Draw(d.rt, "f32"))
	default:
		return binary.LittleEndian.AppendUint64([]byte{0x44}, rapid.Uint64Range(0x3fe0000000000000, 0x40f0000000000000).Draw(d.rt, "f64"))
	}
}

// drawnBody is the body of one function: the first rounds locals after its
// parameters are of loops, which count down.
type drawnBody struct {
	*drawn
	self   int
	locals []ValueType
	rounds int      // locals of loops that are taken
	first  int      // of them
	labels []uint32 // for each open block: the local of a loop plus 1, or 0
	budget int      // instructions
}

const maxRounds = 6

func (d *drawn) body(i int) []byte {
	k := d.kinds[d.funcs[i]]
	f := &drawnBody{drawn: d, self: drawnImports + i, first: len(k.Params), budget: 60}
	f.locals = append(f.locals, k.Params...)
	for range maxRounds {
		f.locals = append(f.locals, I32)
	}
	var decls [][]byte
	decls = append(decls, []byte{maxRounds, byte(I32)})
	for range d.upTo(4, "locals") {
		t := rapid.SampledFrom([]ValueType{I32, I64, F32, F64, V128, FuncRef}).Draw(d.rt, "local")
		f.locals = append(f.locals, t)
		decls = append(decls, []byte{1, byte(t)})
	}
	code := f.statements(3)
	for _, t := range k.Results {
		code = append(code, f.value(t, 2)...)
	}
	return sized(cat(vec(decls...), code, []byte{opEnd}))
}

func (f *drawnBody) statements(depth int) []byte {
	var code []byte
	for range f.upTo(5, "statements") {
		if f.budget--; f.budget < 0 {
			break
		}
		code = append(code, f.statement(depth)...)
	}
	return code
}

// settable returns a local that the code may set, of any type.
func (f *drawnBody) settable() (int, ValueType) {
	var list []int
	for i := range f.locals {
		if i < f.first || i >= f.first+maxRounds {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1, 0
	}
	i := rapid.SampledFrom(list).Draw(f.rt, "local")
	return i, f.locals[i]
}

func (f *drawnBody) statement(depth int) []byte {
	kinds := 11
	if depth > 0 {
		kinds = 16
	}
	switch f.upTo(kinds, "statement") {
	case 0, 1, 2:
		i, t := f.settable()
		if i < 0 {
			return nil
		}
		if f.flip("tee") {
			return cat(f.value(t, 2), []byte{opLocalTee}, num(i), []byte{opDrop})
		}
		return cat(f.value(t, 2), []byte{opLocalSet}, num(i))
	case 3:
		i := f.upTo(len(f.globals)-1, "global")
		return cat(f.value(f.globals[i], 2), []byte{opGlobalSet}, num(i))
	case 4, 5:
		op := rapid.SampledFrom([][]byte{{0x36, byte(I32)}, {0x37, byte(I64)}, {0x38, byte(F32)}, {0x39, byte(F64)}, {0x3a, byte(I32)}, {0x3d, byte(I64)}}).Draw(f.rt, "store")
		return cat(f.address(), f.value(ValueType(op[1]), 1), []byte{op[0], 0, byte(f.upTo(20, "offset"))})
	case 6:
		return f.bulk()
	case 7:
		return f.exit()
	case 8:
		return f.proceed()
	case 9:
		return f.call(true)
	case 10:
		return cat([]byte{opRefFunc}, num(drawnImports+len(f.funcs)-1), []byte{0xd1, opDrop})
	case 11:
		return f.call(false)
	case 12, 13, 14:
		return f.loop(depth)
	case 15:
		return cat(f.value(I32, 2), []byte{opIf, 0x40}, f.inside(0, depth), []byte{opElse}, f.inside(0, depth), []byte{opEnd})
	default:
		return cat([]byte{opBlock, 0x40}, f.inside(0, depth), []byte{opEnd})
	}
}

// inside draws the content of a block.
func (f *drawnBody) inside(counter uint32, depth int) []byte {
	f.labels = append(f.labels, counter)
	code := f.statements(depth - 1)
	f.labels = f.labels[:len(f.labels)-1]
	return code
}

// loop draws a loop of a few rounds.
func (f *drawnBody) loop(depth int) []byte {
	if f.rounds == maxRounds {
		return nil
	}
	counter := f.first + f.rounds
	f.rounds++
	n := rapid.SampledFrom([]int64{1, 3, 20, 300}).Draw(f.rt, "rounds")
	if depth < 3 {
		n = min(n, 20)
	}
	code := cat(appendSigned([]byte{opI32Const}, n), []byte{opLocalSet}, num(counter), []byte{opLoop, 0x40}, f.inside(uint32(counter)+1, depth))
	return cat(code, again(counter, 0), []byte{opEnd})
}

// again goes round a loop once more while its counter is above 1.
func again(counter, label int) []byte {
	return cat([]byte{opLocalGet}, num(counter), []byte{opI32Const, 1, opI32Sub, opLocalTee}, num(counter), []byte{opI32Const, 0, 0x4a, opBrIf}, num(label))
}

// proceed goes on with the next round of a loop around.
func (f *drawnBody) proceed() []byte {
	var list []int
	for i, c := range f.labels {
		if c > 0 {
			list = append(list, len(f.labels)-1-i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	label := rapid.SampledFrom(list).Draw(f.rt, "loop")
	return again(int(f.labels[len(f.labels)-1-label])-1, label)
}

// exit leaves blocks that are no loops, or the function.
func (f *drawnBody) exit() []byte {
	var list []int
	for i, c := range f.labels {
		if c == 0 {
			list = append(list, len(f.labels)-1-i)
		}
	}
	results := f.kind(f.self).Results
	var values []byte
	for _, t := range results {
		values = append(values, f.value(t, 1)...)
	}
	switch kind := f.upTo(9, "exit"); {
	case kind == 0:
		return []byte{opUnreachable}
	case kind == 1:
		return append(values, opReturn)
	case kind == 2 && len(results) == 1:
		return cat(values, f.value(I32, 1), []byte{opBrIf}, num(len(f.labels)), []byte{opDrop})
	case len(list) == 0:
		return nil
	case kind < 6:
		return cat(f.value(I32, 1), []byte{opBrIf}, num(rapid.SampledFrom(list).Draw(f.rt, "label")))
	case kind < 8:
		a, b := rapid.SampledFrom(list).Draw(f.rt, "label"), rapid.SampledFrom(list).Draw(f.rt, "label")
		return cat(f.value(I32, 1), []byte{opBrTable, 2}, num(a), num(b), num(a))
	}
	return cat([]byte{opBr}, num(rapid.SampledFrom(list).Draw(f.rt, "label")))
}

// address is one that is in memory, mostly.
func (f *drawnBody) address() []byte {
	if f.upTo(30, "wild") == 0 {
		return f.value(I32, 1)
	}
	return cat(f.value(I32, 1), []byte{opI32Const, 0xff, 0xff, 3, 0x71})
}

func (f *drawnBody) bulk() []byte {
	small := func() []byte { return cat(f.value(I32, 0), []byte{opI32Const, 0x3f, 0x71}) }
	tail := rapid.SampledFrom([][]byte{
		{opBulk, 11, 0},
		{opBulk, 10, 0, 0},
		{opBulk, 8, 1, 0},
		{opBulk, 12, 1, 0},
		{opBulk, 14, 0, 0},
		{opMemoryGrow},
		{opBulk, 15, 0},
		{opBulk, 9, 1},
		{opBulk, 13, 1},
		{opBulk, 17, 0},
	}).Draw(f.rt, "bulk")
	switch {
	case tail[0] == opMemoryGrow:
		return cat(f.value(I32, 0), []byte{opI32Const, 1, 0x71, opMemoryGrow, 0, opDrop})
	case tail[1] == 15: // table.grow
		return cat([]byte{0xd0, 0x70}, f.value(I32, 0), tail, []byte{opDrop})
	case tail[1] == 17: // table.fill
		return cat(small(), []byte{0xd0, 0x70}, small(), tail)
	case tail[1] == 9 || tail[1] == 13:
		return tail
	}
	return cat(f.address(), small(), small(), tail)
}

// call calls a later function, and drops what it returns.
func (f *drawnBody) call(indirect bool) []byte {
	callee := rapid.SampledFrom([]int{0, min(f.self+1, drawnImports+len(f.funcs)-1), drawnImports + len(f.funcs) - 1}).Draw(f.rt, "callee")
	if callee != 0 && callee <= f.self {
		callee = 0
	}
	k := f.kind(callee)
	var code []byte
	for _, t := range k.Params {
		code = append(code, f.value(t, 1)...)
	}
	if indirect {
		at := callee + 1
		if f.upTo(20, "wrong") == 0 {
			at = 0
		}
		code = cat(code, []byte{opI32Const}, appendSigned(nil, int64(at)), []byte{opCallIndirect}, num(f.typeOf(callee)), []byte{0})
	} else {
		code = cat(code, []byte{opCall}, num(callee))
	}
	for range k.Results {
		code = append(code, opDrop)
	}
	return code
}

func (f *drawnBody) typeOf(callee int) int {
	if callee < drawnImports {
		return 0
	}
	return f.funcs[callee-drawnImports]
}

// value draws an expression of a type.
func (f *drawnBody) value(t ValueType, depth int) []byte {
	var locals []int
	for i, l := range f.locals {
		if l == t {
			locals = append(locals, i)
		}
	}
	switch t {
	case V128:
		if depth > 0 {
			return cat(f.value(I32, depth-1), []byte{opVector, 17}, f.value(V128, depth-1), []byte{opVector, 0xae, 1})
		}
		return cat([]byte{opVector, 12}, []byte("0123456789abcdef"))
	case FuncRef:
		return cat([]byte{opRefFunc}, num(drawnImports+len(f.funcs)-1))
	}
	if depth == 0 || f.upTo(3, "leaf") == 0 {
		if len(locals) > 0 && f.flip("a local") {
			return cat([]byte{opLocalGet}, num(rapid.SampledFrom(locals).Draw(f.rt, "local")))
		}
		return f.constant(t)
	}
	a := func() []byte { return f.value(t, depth-1) }
	switch t {
	case I32:
		switch f.upTo(6, "i32") {
		case 0:
			return cat(f.address(), []byte{0x28, 0, 4})
		case 1:
			return cat(f.value(I64, depth-1), []byte{0xa7})
		case 2:
			return cat(a(), []byte{opIf, byte(I32)}, a(), []byte{opElse}, a(), []byte{opEnd})
		case 3:
			return cat(a(), a(), []byte{byte(f.upTo(9, "comparison")) + 0x46})
		case 4:
			return cat(f.value(F64, depth-1), f.value(F64, depth-1), []byte{0x63})
		case 5:
			return cat(a(), a(), a(), []byte{opSelect})
		}
		return cat(a(), a(), []byte{byte(f.upTo(14, "arithmetic")) + 0x6a})
	case I64:
		switch f.upTo(3, "i64") {
		case 0:
			return cat(f.address(), []byte{0x29, 0, 4})
		case 1:
			return cat(f.value(I32, depth-1), []byte{opI64ExtendU})
		}
		return cat(a(), a(), []byte{byte(f.upTo(14, "arithmetic")) + 0x7c})
	case F32:
		if f.flip("convert") {
			return cat(f.value(I32, depth-1), []byte{0xb2})
		}
		return cat(a(), a(), []byte{byte(f.upTo(1, "arithmetic")) + 0x92})
	default:
		if f.flip("convert") {
			return cat(f.value(I32, depth-1), []byte{0xb7})
		}
		return cat(a(), a(), []byte{byte(f.upTo(1, "arithmetic")) + 0xa0})
	}
}
