package wasmbin

// Weights, of which 1 is a plain instruction: about a nanosecond at most.
const (
	weighCall     = 8  // and what a light function weighs
	weighIndirect = 16 // the same
	weighDivision = 8
	weighVector   = 2
	weighBulk     = 64
	lightWeight   = 48 // of a function that has no check at its entry
	lightBytes    = 4 * lightWeight
)

// Size of what a weight of 1 moves, as powers of two.
const (
	bytesShift = 3  // 8 bytes
	pageShift  = 13 // a page of memory weighs that of 64 KiB
)

// edit is a change to the code of a function.
type edit struct {
	start, end int // what is replaced
	kind       editKind
	n          uint64
}

type editKind byte

const (
	editNothing editKind = iota
	editCheck            // a check that takes n
	editTight            // a check that takes n of what a tight loop has paid
	editOpen             // what is before a tight loop
	editClose            // what is after it; n of the planner's copies are its own
	editIndex            // the number n
	editRef              // the value of global n
	editBulk             // a check that takes what a bulk instruction moves, whose number is n
	editGrow             // the same for memory.grow
)

// planner decides which checks go into one function, and what they take.
type planner struct {
	paths
	w       *rewriter
	f       *reader
	edits   []edit
	types   localTypes
	copies  []uint32 // locals that the tight loops set, one loop after the other
	extra   bool     // it needs the locals of appendLocals
	calling bool
	first   byte
	count   int
}

// plan reads a function body from after its locals, checks its indices, returns
// the weight of its heaviest path outside of loops, and leaves the changes to it in
// p.edits, in ascending order: a check at its entry, at the header of each loop and
// where a stretch is full. Bulk instructions have their own. There is none at the
// entry of a function that calls nothing and is light, as it cannot recurse: its
// callers pay for it. There is none either where the first instruction is a loop and
// little is outside of it: the loop's pays for that.
func (p *planner) plan() uint64 {
	p.begin()
	p.check(p.f.pos)
	walk(p.f, p.visit)
	if p.f.err != nil {
		return 0
	}
	p.pay(p.scopes[0])
	heaviest := p.scopes[0].heaviest
	switch {
	case heaviest > lightWeight:
	case !p.calling:
		p.edits[0].kind = editNothing
	case p.first == opLoop && p.edits[2].kind == editCheck:
		p.edits[0].kind = editNothing
		p.edits[2].n += heaviest
	}
	return heaviest
}

// check puts a check to a place, for what the scope pays.
func (p *planner) check(at int) {
	s := p.top()
	s.checks = append(s.checks, len(p.edits))
	p.edits = append(p.edits, edit{start: at, end: at, kind: editCheck})
}

// pay has all checks of a scope take what the heaviest of them has to.
func (p *planner) pay(s scope) {
	for _, i := range s.checks {
		p.edits[i].n = s.heaviest
	}
}

// add adds an instruction, with a check before it where a stretch is full.
func (p *planner) add(start int, weight uint64) {
	if p.paths.add(weight) {
		p.check(start)
	}
}

// operand reads what follows an opcode once more.
func (p *planner) operand(start int) *reader {
	return &reader{b: p.f.b[:p.f.pos], pos: start + 1, base: p.f.base}
}

// index checks the index after an opcode.
func (p *planner) index(start int, what string, n uint64) uint32 {
	r := p.operand(start)
	i := r.u32()
	if uint64(i) >= n {
		r.failf("%s %d does not exist", what, i)
		p.f.err = r.err
	}
	return i
}

func (p *planner) visit(start int, op byte, sub uint32) {
	if p.count++; p.count == 1 {
		p.first = op
	}
	switch op {
	case opBlock, opLoop, opIf:
		p.open(start, op)
	case opElse:
		p.alternative()
	case opEnd:
		p.end()
	case opBr, opBrIf, opBrTable, opReturn, opUnreachable:
		p.jump(start, op)
	case opCall, opRefFunc:
		p.function(start, op)
	case opCallIndirect:
		p.index(start, "type", uint64(len(p.w.p.types)))
		p.calls()
		p.add(start, weigh(op, sub))
		p.called()
	case opLocalGet, opLocalSet, opLocalTee:
		i := p.index(start, "local", p.types.n)
		p.add(start, 1)
		if op != opLocalGet {
			p.top().tight.sets(i)
		}
	case opGlobalGet, opGlobalSet:
		p.index(start, "global", uint64(p.w.p.globals))
		p.add(start, 1)
	case opMemoryGrow:
		p.moves(start, editGrow, 0)
	case opBulk:
		if amountShift(sub) >= 0 {
			p.moves(start, editBulk, sub)
		} else {
			p.add(start, 1)
		}
	default:
		p.add(start, weigh(op, sub))
	}
}

// weigh returns what an instruction weighs, without what a function that it calls does
// not pay itself.
func weigh(op byte, sub uint32) uint64 {
	switch op {
	case opElse, opEnd:
		return 0
	case opCall:
		return weighCall
	case opCallIndirect:
		return weighIndirect + lightWeight
	case opMemoryGrow:
		return weighBulk
	case opBulk:
		if amountShift(sub) >= 0 {
			return weighBulk
		}
	case opVector:
		return weighVector
	case 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82, 0x91, 0x95, 0x9f, 0xa3: // divisions, remainders, roots
		return weighDivision
	}
	return 1
}

// amountShift says by which power of two the last operand of a bulk instruction
// is divided for its weight; -1: it moves nothing.
func amountShift(sub uint32) int {
	switch sub {
	case 8, 10, 11: // memory.init, memory.copy, memory.fill
		return bytesShift
	case 12, 14, 15, 17: // table.init, table.copy, table.grow, table.fill
		return 0
	}
	return -1
}

func (p *planner) moves(start int, kind editKind, sub uint32) {
	p.add(start, weighBulk)
	p.extra, p.top().tight.not = true, true
	p.edits = append(p.edits, edit{start: start, end: start, kind: kind, n: uint64(sub)})
}

func (p *planner) calls() { p.calling, p.top().tight.not = true, true }

// function has the index of a function after its opcode.
func (p *planner) function(start int, op byte) {
	i := p.index(start, "function", uint64(len(p.w.p.funcs)))
	if op == opRefFunc {
		p.reference(start, i)
		return
	}
	p.calls()
	p.add(start, weighCall+p.w.unpaid(i))
	if i >= p.w.imported && p.w.unpaid(i) == 0 {
		p.called()
	}
	if s := p.w.shifted(i); s != i {
		p.edits = append(p.edits, edit{start: start + 1, end: p.f.pos, kind: editIndex, n: uint64(s)})
	}
}

func (p *planner) open(start int, op byte) {
	r := p.operand(start)
	if r.peek() != 0x40 {
		if i := r.signed(33); i >= int64(len(p.w.p.types)) {
			r.failf("type %d does not exist", i)
			p.f.err = r.err
			return
		}
	}
	p.add(start, 1)
	if op != opLoop {
		p.enter(op)
		return
	}
	p.top().tight.not = true // it is not innermost
	p.edits = append(p.edits, edit{start: start, end: start})
	p.enter(op)
	p.top().tight.not = r.peek() != 0x40
	p.check(p.f.pos)
}

// end closes a block.
func (p *planner) end() {
	loop, ok := p.leave()
	if !ok {
		return
	}
	p.pay(loop)
	if loop.heaviest <= tightWeight && !loop.tight.not {
		p.tighten(loop)
	}
}

func (p *planner) jump(start int, op byte) {
	p.add(start, 1)
	r := p.operand(start)
	switch op {
	case opBr:
		p.branch(r)
	case opBrIf:
		p.branch(r)
		return
	case opBrTable:
		for n := uint64(r.u32()) + 1; n > 0; n-- {
			p.branch(r)
		}
	}
	p.stop()
}

// branch joins a path to where a label is.
func (p *planner) branch(r *reader) {
	start := r.pos
	label := r.u32()
	if uint64(label) >= uint64(len(p.blocks)) {
		r.failf("label %d does not exist", label)
		p.f.err = r.err
		return
	}
	b := &p.blocks[len(p.blocks)-1-int(label)]
	if s := p.top(); b.scope < len(p.scopes)-1 && !s.tight.not && (b.op != opLoop || b.scope < len(p.scopes)-2) {
		s.tight.leaves = append(s.tight.leaves, len(p.edits))
		p.edits = append(p.edits, edit{start: start, end: r.pos, kind: editIndex, n: uint64(label)})
	}
	p.join(label)
}
