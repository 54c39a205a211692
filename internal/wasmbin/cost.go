package wasmbin

import "math"

// cost is what an engine needs to compile a function, or a module.
type cost struct {
	size   uint64 // instructions, weighed
	nodes  uint64 // basic blocks
	depth  uint64 // of blocks
	loops  uint64 // nested
	values uint64 // of calls and branches
	live   uint64 // basic blocks times values that live in them
	phis   uint64 // loops times variables
	bounds uint64 // basic blocks times addresses known in them
	square uint64 // of nodes
	bulk   uint64
	height uint64
	vars   uint64
}

// coster adds up the cost of one function.
type coster struct {
	cost
	p       *parser
	f       *reader
	frames  []costFrame
	stack   []uint32 // operands, as numbers of values
	locals  []local
	epoch   uint32 // how often control flow has met
	next    uint32 // number of the next value
	globals uint64 // mutable ones
	allVars uint64
	heights uint64
	nLoops  uint64
}

// local is a local variable: the function and the epoch that its value is of.
type local struct{ seen, epoch, value, bound uint32 }

type costFrame struct {
	op              byte
	params, results int
	height          int
	loops           uint64
	entry, joined   uint64 // known addresses
	known           uint64
	dead            bool
}

const (
	nowhere = math.MaxUint64
	isLocal = 1 << 31
)

func (c *coster) top() *costFrame { return &c.frames[len(c.frames)-1] }

// node counts basic blocks that begin here.
func (c *coster) node(n int) {
	c.nodes += uint64(n)
	c.heights += uint64(n) * uint64(len(c.stack))
	c.bounds += uint64(n) * c.top().known
}

func (c *coster) move(pop, push int) {
	c.height = max(c.height, uint64(len(c.stack)))
	c.stack = c.stack[:max(len(c.stack)-pop, c.top().height)]
	for range push {
		c.next++
		c.stack = append(c.stack, c.next)
	}
}

func (c *coster) operand(start int) *reader { return &reader{b: c.f.b[:c.f.pos], pos: start + 1} }

func (c *coster) visit(start int, op byte, sub uint32) {
	c.size++
	switch op {
	case opBlock, opLoop, opIf:
		c.open(start, op)
	case opElse:
		c.alternative()
	case opEnd:
		c.end()
	case opBr, opBrIf:
		c.branch(c.operand(start).u32())
		if op == opBr {
			c.dead()
		}
	case opBrTable:
		c.move(1, 0)
		r := c.operand(start)
		for range r.u32() + 1 {
			c.branch(r.u32())
		}
		c.dead()
	case opReturn:
		c.values += uint64(c.frames[0].results)
		c.dead()
	case opUnreachable:
		c.dead()
	case opCall:
		i := c.operand(start).u32()
		if uint64(i) < uint64(len(c.p.funcs)) {
			c.call(c.p.types[c.p.funcs[i]])
		}
	case opCallIndirect:
		c.move(1, 0)
		i := c.operand(start).u32()
		if uint64(i) < uint64(len(c.p.types)) {
			c.call(c.p.types[i])
		}
	case opBulk:
		c.bulkOp(sub)
	case opVector:
		c.size += 2
		c.net(int(vectorEffect[sub]), true)
	case opLocalGet, opLocalSet, opLocalTee:
		c.local(op, c.operand(start).u32())
	default:
		c.plain(op)
	}
}

func (c *coster) plain(op byte) {
	if op >= opFirstLoad && op <= opLastStore {
		c.size += 4
		at := len(c.stack) - 1
		if op >= opFirstStore {
			at--
		}
		if at >= c.top().height {
			c.address(c.stack[at])
		}
	}
	c.net(int(effect[op]), op >= opFirstLoad && op <= 0xc4)
}

func (c *coster) net(n int, fresh bool) {
	if n > 0 {
		c.move(0, n)
	} else {
		c.move(-n, 0)
	}
	if fresh && n <= 0 && len(c.stack) > c.top().height {
		c.move(1, 1)
	}
}

// address notes an access through an address.
func (c *coster) address(v uint32) {
	if v&isLocal != 0 {
		l := &c.locals[v&^isLocal]
		if l.bound == c.epoch {
			return
		}
		l.bound = c.epoch
	}
	c.top().known++
}

func (c *coster) local(op byte, i uint32) {
	if uint64(i) < uint64(len(c.locals)) {
		l := &c.locals[i]
		if l.seen == 0 {
			l.seen = 1
			c.vars++
		}
		if op != opLocalGet {
			l.bound = 0
		}
	}
	switch op {
	case opLocalGet:
		c.stack = append(c.stack, i|isLocal)
	case opLocalSet:
		c.move(1, 0)
	}
}

func (c *coster) call(t FuncType) {
	c.size += 8
	c.values += uint64(len(t.Params)+len(t.Results)) + c.globals
	c.move(len(t.Params), len(t.Results))
}

func (c *coster) bulkOp(sub uint32) {
	c.net(int(bulkEffect[sub]), sub < 8)
	if sub >= 8 {
		c.bulk++
		c.size += 40
	}
	if sub == 11 || sub == 17 {
		c.node(3)
	}
}

func (c *coster) open(start int, op byte) {
	r := c.operand(start)
	fr := costFrame{op: op, loops: c.top().loops, joined: nowhere}
	if x := r.peek(); x != 0x40 {
		if i := r.signed(33); i < 0 {
			fr.results = 1
		} else if i < int64(len(c.p.types)) {
			t := c.p.types[i]
			fr.params, fr.results = len(t.Params), len(t.Results)
		}
	}
	n := 1
	switch op {
	case opLoop:
		n = 2
		c.nLoops++
		fr.loops++
		c.loops = max(c.loops, fr.loops)
		c.values += uint64(fr.params)
		c.epoch++
	case opIf:
		n = 3
		c.move(1, 0)
	}
	c.values += uint64(fr.params + fr.results)
	c.node(n)
	fr.known, fr.entry, fr.dead = c.top().known, c.top().known, c.top().dead
	fr.height = max(c.top().height, len(c.stack)-fr.params)
	if op == opIf {
		c.epoch++
	}
	c.frames = append(c.frames, fr)
	c.depth = max(c.depth, uint64(len(c.frames)))
}

func (c *coster) alternative() {
	t := c.top()
	if !t.dead {
		t.joined = min(t.joined, t.known)
	}
	c.values += uint64(t.results)
	t.op, t.known, t.dead = opElse, t.entry, false
	c.epoch++
	c.move(len(c.stack), t.params)
}

func (c *coster) end() {
	t := *c.top()
	if t.op == opIf {
		t.joined = min(t.joined, t.entry)
	}
	if !t.dead {
		t.joined = min(t.joined, t.known)
	}
	c.values += uint64(t.results)
	c.move(len(c.stack), 0)
	if len(c.frames) == 1 {
		return
	}
	c.frames = c.frames[:len(c.frames)-1]
	c.move(0, t.results)
	o := c.top()
	if t.joined == nowhere {
		o.dead = true
	} else {
		o.known = t.joined
	}
	c.epoch++
}

func (c *coster) branch(depth uint32) {
	if uint64(depth) >= uint64(len(c.frames)) {
		return
	}
	c.size += 2
	t := &c.frames[len(c.frames)-1-int(depth)]
	if t.op == opLoop {
		c.values += uint64(t.params)
	} else {
		c.values += uint64(t.results)
		t.joined = min(t.joined, c.top().known)
	}
	c.node(1)
}

func (c *coster) dead() {
	c.move(len(c.stack), 0)
	c.top().dead = true
}

func (p *parser) costOf(f *reader, t FuncType, locals uint64, globals uint64) cost {
	c := &coster{p: p, f: f, globals: globals}
	c.locals = make([]local, len(t.Params)+int(locals))
	c.epoch = 1
	c.frames = []costFrame{{results: len(t.Results), joined: nowhere}}
	walk(f, c.visit)
	c.values += uint64(len(t.Params) + len(t.Results))
	v := c.vars + 2 + min(globals, c.size)
	c.live = c.nodes*v + c.heights
	c.phis = c.nLoops * v
	c.square = c.nodes * c.nodes
	return c.cost
}
