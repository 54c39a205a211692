package wasmbin

import "slices"

// Limits of the implementation. They are those of the WebAssembly JavaScript
// Interface, "Implementation-defined Limits", which toolchains stay below, or
// lower ones for what costs a host much; elements, names, sections and the sum
// of locals have none there.
const (
	maxTypes    = 100_000
	maxFuncs    = 1_000_000
	maxImports  = 100_000
	maxExports  = 100_000
	maxGlobals  = 1_000_000
	maxSegments = 1_000_000
	maxTables   = 100
	maxMemories = 100
	maxParams   = 1000
	maxResults  = 1000
	maxLocals   = 50_000 - extraLocals
	maxBody     = 7_654_321 // bytes of one function
	maxElements = 1_000_000 // of all segments together
	maxNames    = 2_000_000 // of the name section
	maxSections = 10_000
	maxLocalSum = 20_000_000
	maxTypeSum  = 1_000_000
)

// parser holds what later sections need of earlier ones.
type parser struct {
	module   Module
	sections []section
	types    []FuncType
	funcs    []uint32 // type of every function, imported ones first
	globals  int
	refs     []uint32          // functions that code refers to
	refAt    map[uint32]uint32 // where in refs each is
	mutables uint64            // of the globals
	codes    int
	counted  bool // there is a data count
	count    uint32
	localSum uint64
	elements uint64
	segments uint64 // of elements and of data
	typeSum  uint64 // parameters and results of all types
	nodes    uint64 // basic blocks of the largest function
	memory   uint64 // bytes that the largest function takes to compile
	kept     uint64 // bytes of the machine code of all functions
	work     uint64 // ns that the functions take to compile
	locals   []local
	operands []uint32
	paths    paths
	bodies   []uint32 // bytes of each
}

func parse(b []byte) (*parser, error) {
	p, err := parseSections(b, nil)
	if err != nil {
		return nil, err
	}
	if p.codes != p.module.Functions {
		return nil, &FormatError{Offset: len(b), Problem: "functions and bodies differ in number"}
	}
	if err := p.perFunction(); err != nil {
		return nil, err
	}
	return p, nil
}

// parseSections reads the sections of a module but for those that it passes over.
func parseSections(b []byte, passed []byte) (*parser, error) {
	sections, err := split(b)
	if err != nil {
		return nil, err
	}
	if len(sections) > maxSections {
		return nil, &LimitError{What: "sections", Have: uint64(len(sections)), Max: maxSections}
	}
	p := &parser{sections: sections}
	for _, s := range sections {
		if slices.Contains(passed, s.id) {
			continue
		}
		r := &reader{b: s.body, base: s.off}
		p.section(s.id, r)
		if r.err == nil && r.left() > 0 {
			r.failf("section %d has %d bytes left over", s.id, r.left())
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return p, nil
}

func (p *parser) section(id byte, r *reader) {
	switch id {
	case sectionCustom:
		p.custom(r)
	case sectionType:
		for range r.count("types", maxTypes) {
			p.funcType(r)
		}
	case sectionImport:
		for range r.count("imports", maxImports) {
			p.imported(r)
		}
	case sectionFunction:
		n := r.count("functions", maxFuncs)
		p.module.Functions = n
		for range n {
			p.function(r)
		}
	case sectionTable:
		for range r.count("tables", maxTables) {
			t := Table{Elem: refType(r)}
			t.Limits = limits(r)
			p.module.Tables = append(p.module.Tables, t)
		}
	case sectionMemory:
		for range r.count("memories", maxMemories) {
			p.module.Memories = append(p.module.Memories, Memory{Limits: memoryLimits(r)})
		}
	case sectionGlobal:
		for range r.count("globals", maxGlobals) {
			valueType(r)
			p.global(mutable(r))
			constant(r)
		}
	case sectionExport:
		p.exports(r)
	case sectionStart:
		p.index(r, "function", len(p.funcs))
		p.module.Start = true
	case sectionElement:
		for range r.count("element segments", maxSegments) {
			if p.elements += element(r); r.err != nil {
				return
			}
			r.limit("elements", p.elements, maxElements)
			p.segments++
		}
	case sectionDataCount:
		p.count, p.counted = r.u32(), true
	case sectionCode:
		p.code(r)
	case sectionData:
		p.data(r)
	}
}

func (p *parser) custom(r *reader) {
	name := r.name()
	data := r.take(uint64(r.left()))
	p.module.Custom = append(p.module.Custom, Custom{Name: name, Data: data})
	if name == "name" && r.err == nil {
		names := &reader{b: data, base: r.base + r.pos - len(data)}
		nameSection(names)
		r.err = names.err
	}
}

func (p *parser) funcType(r *reader) {
	if r.byte() != 0x60 {
		r.fail("not a function type")
	}
	var t FuncType
	for range r.count("parameters", maxParams) {
		t.Params = append(t.Params, valueType(r))
	}
	for range r.count("results", maxResults) {
		t.Results = append(t.Results, valueType(r))
	}
	p.typeSum += uint64(len(t.Params) + len(t.Results))
	r.limit("parameters and results in all types", p.typeSum, maxTypeSum)
	if r.err == nil {
		p.types = append(p.types, t)
	}
}

// global counts a global.
func (p *parser) global(mutable bool) {
	p.globals++
	if mutable {
		p.mutables++
	}
}

// index reads an index below n.
func (p *parser) index(r *reader, what string, n int) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.failf("%s %d does not exist", what, i)
		return 0
	}
	return i
}

// function reads the type of a function.
func (p *parser) function(r *reader) FuncType {
	i := p.index(r, "type", len(p.types))
	if r.err != nil {
		return FuncType{}
	}
	p.funcs = append(p.funcs, i)
	return p.types[i]
}

func (p *parser) imported(r *reader) {
	im := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
	switch im.Kind {
	case KindFunc:
		im.Type = p.function(r)
	case KindTable:
		im.Value = refType(r)
		im.Limits = limits(r)
		p.module.Tables = append(p.module.Tables, Table{Elem: im.Value, Limits: im.Limits, Imported: true})
	case KindMemory:
		im.Limits = memoryLimits(r)
		p.module.Memories = append(p.module.Memories, Memory{Limits: im.Limits, Imported: true})
	case KindGlobal:
		im.Value = valueType(r)
		im.Mutable = mutable(r)
		p.global(im.Mutable)
	default:
		r.failf("imports of kind %d are unknown", byte(im.Kind))
	}
	if r.err == nil {
		p.module.Imports = append(p.module.Imports, im)
	}
}

func (p *parser) exports(r *reader) {
	n := r.count("exports", maxExports)
	seen := make(map[string]bool, n)
	for range n {
		e := Export{Name: r.name(), Kind: Kind(r.byte())}
		switch e.Kind {
		case KindFunc:
			e.Index = p.index(r, "function", len(p.funcs))
			if r.err == nil {
				e.Type = p.types[p.funcs[e.Index]]
			}
		case KindTable:
			e.Index = p.index(r, "table", len(p.module.Tables))
		case KindMemory:
			e.Index = p.index(r, "memory", len(p.module.Memories))
		case KindGlobal:
			e.Index = p.index(r, "global", p.globals)
		default:
			r.failf("exports of kind %d are unknown", byte(e.Kind))
		}
		if seen[e.Name] {
			r.failf("the export %.60q is there twice", e.Name)
		}
		if r.err != nil {
			return
		}
		seen[e.Name] = true
		p.module.Exports = append(p.module.Exports, e)
	}
}

func (p *parser) code(r *reader) {
	p.codes = r.count("function bodies", maxFuncs)
	if p.codes > p.module.Functions {
		r.fail("functions and bodies differ in number")
		return
	}
	imported := len(p.funcs) - p.module.Functions
	p.sizes(*r)
	for i := range p.codes {
		body := r.sub(uint64(r.u32()))
		r.limit("bytes in one function", uint64(len(body.b)), maxBody)
		locals := localDecls(body)
		p.localSum += locals
		if r.err == nil {
			r.err = body.err
		}
		r.limit("locals in all functions", p.localSum, maxLocalSum)
		if r.err == nil && (body.left() == 0 || body.b[len(body.b)-1] != opEnd) {
			r.fail("a function body has no end")
		}
		number := imported + i
		p.costs(r, body, number, p.types[p.funcs[number]], locals)
		if r.err != nil {
			return
		}
	}
}

// sizes notes how large the function bodies are.
func (p *parser) sizes(r reader) {
	p.bodies = make([]uint32, 0, p.codes)
	for range p.codes {
		n := r.u32()
		r.sub(uint64(n))
		if r.err != nil {
			return
		}
		p.bodies = append(p.bodies, n)
	}
}

// small reports whether function i may be one that has no check: see lightWeight.
func (p *parser) small(i uint32) bool {
	n := uint64(i) - uint64(len(p.funcs)-p.module.Functions)
	return n < uint64(len(p.bodies)) && p.bodies[n] <= lightBytes
}

// localDecls reads the declarations of locals and returns how many there are.
func localDecls(r *reader) uint64 {
	var sum uint64
	localRuns(r, func(n uint64, _ ValueType) { sum += n })
	return sum
}

// localRuns reads the declarations of locals: how many of which type.
func localRuns(r *reader, visit func(n uint64, t ValueType)) {
	var sum uint64
	for range r.count("local declarations", maxLocals) {
		n := uint64(r.u32())
		t := valueType(r)
		sum += n
		if r.limit("locals in one function", sum, maxLocals); r.err == nil {
			visit(n, t)
		}
	}
}

func (p *parser) data(r *reader) {
	n := r.count("data segments", maxSegments)
	if p.counted && uint64(n) != uint64(p.count) {
		r.fail("data segments and data count differ")
	}
	p.segments += uint64(n)
	for range n {
		switch flag := r.u32(); flag {
		case 0:
			constant(r)
		case 1:
		case 2:
			r.u32()
			constant(r)
		default:
			r.failf("data segments of kind %d are unknown", flag)
		}
		if r.take(uint64(r.u32())); r.err != nil {
			return
		}
	}
}
