package wasmbin

// guard is an empty loop: loop (block type: none), end. It may stand before
// any instruction.
var guard = []byte{opLoop, 0x40, opEnd}

// weights say how long code runs until a guard, in bytes of plain instructions.
type weights struct {
	most int // between two guards
	call int // of a call: what the largest function without a guard weighs
	bulk int // of a bulk instruction
}

// standard allows some milliseconds of plain code, 256 calls of functions
// without a guard, or four bulk instructions in a row.
var standard = weights{most: 1 << 20, call: 4096, bulk: 1 << 18}

// planner decides where guards go in one function.
type planner struct {
	weights
	frames []frame
	inside []int // places on the way
	first  byte  // opcode of the first instruction
	count  int
	entry  bool // the function calls or has bulk instructions
}

// frame is a block that is open. since is the weight from the last guard that
// every path to here has passed; total is the weight of the block without its
// guards, for paths that jump over them.
type frame struct {
	op           byte
	atEntry      int
	since, total int
}

// plan reads a function body from after its locals and returns the places,
// in ascending order, before which a guard goes.
func plan(f *reader, w weights) []int {
	start := f.pos
	p := &planner{weights: w, frames: []frame{{}}}
	walk(f, func(at int, op byte, sub uint32) { p.visit(at, f.pos-at, op, sub) })
	if f.err != nil || p.first == opLoop {
		return p.inside
	}
	if p.entry || len(f.b)-start > w.call {
		return append([]int{start}, p.inside...)
	}
	return p.inside
}

func (p *planner) visit(at, size int, op byte, sub uint32) {
	if p.count++; p.count == 1 {
		p.first = op
	}
	top := &p.frames[len(p.frames)-1]
	switch op {
	case opLoop:
		// The header of a loop is a guard itself, so it weighs nothing.
		p.frames = append(p.frames, frame{op: op})
		return
	case opEnd:
		p.end()
		return
	case opElse:
		top.since = top.atEntry
		return
	}
	weight := size
	switch {
	case op == opCall || op == opCallIndirect:
		weight, p.entry = p.call, true
	case op == opBulk && sub >= 8 && sub != 9 && sub != 13 && sub != 16:
		weight, p.entry = p.bulk, true
	}
	if top.since+weight > p.most {
		p.inside = append(p.inside, at)
		top.since = 0
	}
	top.since += weight
	top.total += weight
	if op == opBlock || op == opIf {
		p.frames = append(p.frames, frame{op: op, atEntry: top.since, since: top.since})
	}
}

// end closes a block. Its guards may have been jumped over, so all of it
// counts for what comes after.
func (p *planner) end() {
	last := len(p.frames) - 1
	closed := p.frames[last]
	if p.frames = p.frames[:last]; last == 0 {
		return
	}
	outer := &p.frames[last-1]
	outer.total += closed.total
	if closed.op == opLoop {
		outer.since = 0
	}
	outer.since += closed.total
}
