package wasmbin

import "math"

// coster adds up what a function costs to compile, from what wazero's compiler
// does for it. It takes every branch for a new basic block, and every variable
// that the function names for one that lives in all of them.
type coster struct {
	p         *parser
	f         *reader
	paths     *paths // where Rewrite puts checks
	frames    []costFrame
	stack     []uint32 // operands: numbers, or which local they are of
	locals    []local
	epoch     uint32 // how often control flow has branched or met
	next      uint32 // number of the next value
	weight    uint64 // of instructions
	nodes     uint64 // basic blocks
	loops     uint64
	loopDepth uint64 // loops in each other
	bulk      uint64
	calls     uint64
	vars      uint64 // locals that are named

	globalUses uint64
	values     uint64 // of calls, branches and blocks
	operands   uint64 // sum over nodes of operands
	bounds     uint64 // sum over nodes of addresses known to be in memory
	dominators uint64 // sum over edges of the depth in the dominator tree
	edges      uint64 // sum over edges of nodes in a row before it
	finds      uint64 // sum over uses of variables of nodes in a row before it
	merges     uint64 // edges where all variables may differ
	phis       uint64 // sum over the other edges of variables squared
}

// local is a local: whether it is named, and in which epoch an access to
// memory went through its value.
type local struct {
	named bool
	bound uint32
}

// track is what is known where control flow has come to.
type track struct {
	bounds uint64 // addresses known to be in memory
	dom    uint64 // depth in the dominator tree
	chain  uint64 // nodes in a row
}

func (a track) meet(b track) track {
	return track{min(a.bounds, b.bounds), min(a.dom, b.dom), min(a.chain, b.chain)}
}

var nowhere = track{math.MaxUint64, math.MaxUint64, math.MaxUint64}

// costFrame is a block that is open.
type costFrame struct {
	op              byte
	params, results int
	height          int // of the operands outside
	loops           uint64
	now             track
	entry           track
	joined          track // of the branches to its end
	ways            uint64
	sets            uint64 // of variables in it
	looped          bool   // there is a loop in it
	dead            bool   // control flow does not come to here
}

// isLocal marks an operand that is the value of a local.
const isLocal = 1 << 31

func newCoster(p *parser, f *reader, t FuncType, locals uint64) *coster {
	n := len(t.Params) + int(locals)
	if cap(p.locals) < n {
		p.locals = make([]local, n)
	}
	c := &coster{p: p, f: f, paths: &p.paths, epoch: 1, locals: p.locals[:n], stack: p.operands[:0]}
	clear(c.locals)
	c.paths.begin()
	c.frames = append(c.frames, costFrame{results: len(t.Results), joined: nowhere})
	c.values = uint64(len(t.Params) + len(t.Results))
	c.check(1)
	return c
}

// What the code of a check weighs, without its call.
const weightCheck = 14

// check counts n checks, as Rewrite puts in.
func (c *coster) check(n uint64) {
	c.node(3 * n)
	c.calls += n
	c.weight += n * (weightCheck + weightCall)
	c.globalUses += 4 * n
	c.values += n * (2 + c.p.mutables)
	c.top().sets += 2
	c.find(6 * n)
}

func (c *coster) top() *costFrame { return &c.frames[len(c.frames)-1] }

// node counts basic blocks that begin here, one after the other.
func (c *coster) node(n uint64) {
	t := c.top()
	c.nodes += n
	c.operands += n * uint64(len(c.stack))
	c.bounds += n * t.now.bounds
	t.now.dom += n
	t.now.chain += n
	c.dominators += n * t.now.dom
	c.f.costly("basic blocks in one function", c.nodes, maxNodes)
}

// find counts uses of variables.
func (c *coster) find(n uint64) { c.finds += n * c.top().now.chain }

// move takes operands and leaves new ones.
func (c *coster) move(pop, push int) {
	c.stack = c.stack[:max(len(c.stack)-pop, min(c.top().height, len(c.stack)))]
	c.f.costly("operands at once", uint64(len(c.stack)+push), maxOperands)
	c.f.costly("parameters and results of calls and branches in one function", c.values, maxValues)
	if c.f.err != nil {
		return
	}
	for range push {
		c.next++
		c.stack = append(c.stack, c.next&^isLocal)
	}
}

// net makes the stack higher by n. fresh says that its top is a new value.
func (c *coster) net(n int, fresh bool) {
	c.move(max(0, -n), max(0, n))
	if fresh && n <= 0 && len(c.stack) > c.top().height {
		c.move(1, 1)
	}
}

// operand reads what follows an opcode once more.
func (c *coster) operand(start int) *reader { return &reader{b: c.f.b[:c.f.pos], pos: start + 1} }

func (c *coster) visit(start int, op byte, sub uint32) {
	c.stretches(start, op, sub)
	switch op {
	case opBlock, opLoop, opIf:
		c.open(start, op)
	case opElse:
		c.alternative()
	case opEnd:
		c.end()
	case opBr, opBrIf, opBrTable, opReturn, opUnreachable:
		c.jump(start, op)
	case opCall:
		if i := c.operand(start).u32(); uint64(i) < uint64(len(c.p.funcs)) {
			c.call(weightCall, c.p.types[c.p.funcs[i]])
		}
	case opCallIndirect:
		c.move(1, 0)
		if i := c.operand(start).u32(); uint64(i) < uint64(len(c.p.types)) {
			c.call(weightCallIndirect, c.p.types[i])
		}
	case opRefFunc:
		c.p.refer(c.operand(start).u32())
		c.globalUses++
		c.top().sets++
		c.find(1)
		c.plain(op)
	case opBulk:
		c.bulkOp(sub)
	case opVector:
		c.vector(sub)
	case opLocalGet, opLocalSet, opLocalTee:
		c.local(op, c.operand(start).u32())
	default:
		c.plain(op)
	}
}

// stretches counts the checks of [planner], of which it does not know what functions
// weigh that have none.
func (c *coster) stretches(start int, op byte, sub uint32) {
	n := weigh(op, sub)
	if op == opCall && c.p.small(c.operand(start).u32()) {
		n += lightWeight
	}
	if n > 0 && c.paths.add(n) {
		c.check(1)
	}
	if op == opCall || op == opCallIndirect {
		c.paths.called()
	}
}

func (c *coster) plain(op byte) {
	c.weight += uint64(weight[op])
	switch {
	case op >= opFirstStore && op <= opLastStore:
		c.access(2)
	case op >= opFirstLoad && op < opFirstStore:
		c.access(1)
	case op == opGlobalGet || op == opGlobalSet:
		c.globalUses++
		c.top().sets++
		c.find(1)
	case op == opMemoryGrow:
		c.check(1)
		c.top().sets += 2
	}
	c.net(int(effect[op]), op >= opFirstLoad && op <= 0xc4 || op == opTableGet)
}

func (c *coster) vector(sub uint32) {
	c.weight += weightVector
	switch {
	case sub <= 10 || sub == 92 || sub == 93:
		c.access(1)
	case sub == 11 || sub >= 84 && sub <= 91:
		c.access(2)
	}
	c.net(int(vectorEffect[sub]), true)
}

// access counts an access to memory: the address is the nth operand. One
// through a local that has not changed since needs no new check.
func (c *coster) access(n int) {
	c.find(2)
	at := len(c.stack) - n
	if at >= c.top().height && at >= 0 && c.stack[at]&isLocal != 0 {
		l := &c.locals[c.stack[at]&^isLocal]
		if l.bound == c.epoch {
			return
		}
		l.bound = c.epoch
	}
	c.weight += weightAccess
	c.top().now.bounds++
}

func (c *coster) local(op byte, i uint32) {
	c.weight++
	if uint64(i) >= uint64(len(c.locals)) {
		c.net(int(effect[op]), false) // not valid
		return
	}
	l := &c.locals[i]
	if !l.named {
		l.named = true
		c.vars++
	}
	switch op {
	case opLocalGet:
		c.find(1)
		c.stack = append(c.stack, i|isLocal)
		return
	case opLocalSet:
		c.move(1, 0)
	case opLocalTee:
		c.net(0, true)
	}
	l.bound = 0
	c.top().sets++
}

func (c *coster) call(weight uint64, t FuncType) {
	c.calls++
	c.weight += weight
	c.values += uint64(len(t.Params)+len(t.Results)) + c.p.mutables
	c.top().sets += 2 + c.p.mutables
	c.find(2)
	c.move(len(t.Params), len(t.Results))
}

func (c *coster) bulkOp(sub uint32) {
	c.weight += uint64(bulkWeight[sub])
	c.net(int(bulkEffect[sub]), sub < 8)
	if sub < 8 {
		return
	}
	c.find(2)
	c.check(1)
	c.bulk++
	c.f.costly("bulk instructions in one function", c.bulk, maxBulk)
	if sub == 11 || sub == 17 { // memory.fill and table.fill are loops
		c.node(3)
		c.loops++
		c.merges += 2
	}
}
