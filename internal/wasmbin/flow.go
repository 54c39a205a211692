package wasmbin

// open begins a block.
func (c *coster) open(start int, op byte) {
	c.weight++
	t := c.top()
	if op == opIf {
		c.move(1, 0)
	}
	fr := costFrame{op: op, joined: nowhere, dead: t.dead, loops: t.loops}
	fr.params, fr.results = c.blockArity(start)
	switch op {
	case opBlock:
		c.node(1)
	case opLoop: // with another one around it, as it may be tight
		c.node(6)
		c.check(2)
		c.loops += 2
		c.merges += 4
		fr.loops++
		fr.looped = true
		c.loopDepth = max(c.loopDepth, fr.loops)
		c.f.costly("nested loops", fr.loops, maxLoops)
		c.epoch++
	case opIf:
		c.node(3)
		c.epoch++
	}
	c.values += uint64(fr.params + fr.results)
	c.phis += uint64(fr.params * fr.params)
	fr.now, fr.entry = t.now, t.now
	fr.height = max(t.height, len(c.stack)-fr.params)
	c.frames = append(c.frames, fr)
	c.paths.enter(op)
}

func (c *coster) blockArity(start int) (params, results int) {
	r := c.operand(start)
	if r.peek() == 0x40 {
		return 0, 0
	}
	i := r.signed(33)
	if i < 0 {
		return 0, 1
	}
	if uint64(i) >= uint64(len(c.p.types)) {
		return 0, 0
	}
	t := c.p.types[i]
	return len(t.Params), len(t.Results)
}

// arrive counts a way to the end of a block.
func (c *coster) arrive(t *costFrame, from track) {
	t.joined = t.joined.meet(from)
	t.ways++
	c.values += uint64(t.results)
	c.dominators += from.dom
	c.edges += from.chain
}

func (c *coster) alternative() {
	t := c.top()
	if !t.dead {
		c.arrive(t, t.now)
	}
	t.op, t.now = opElse, t.entry
	t.dead = len(c.frames) > 1 && c.frames[len(c.frames)-2].dead
	c.epoch++
	c.move(len(c.stack), t.params)
	c.paths.alternative()
}

func (c *coster) end() {
	t := c.top()
	if t.op == opIf {
		c.arrive(t, t.entry)
	}
	if !t.dead {
		c.arrive(t, t.now)
	}
	c.move(len(c.stack), 0)
	c.paths.leave()
	if t.ways > 1 {
		c.merge(t)
	}
	if len(c.frames) == 1 {
		c.p.operands = c.stack
		return
	}
	closed := *t
	c.frames = c.frames[:len(c.frames)-1]
	outer := c.top()
	outer.sets += closed.sets
	outer.looped = outer.looped || closed.looped
	c.move(0, closed.results)
	c.epoch++
	if closed.ways == 0 {
		outer.dead = true
		return
	}
	outer.now = closed.joined
	if closed.ways > 1 {
		outer.now.chain = 0
	}
	outer.now.dom++
	outer.now.chain++
}

// merge counts variables that may differ between the ways to a block: those
// that were set in it, or any after a loop.
func (c *coster) merge(t *costFrame) {
	results := uint64(t.results)
	if t.looped {
		c.merges += t.ways
		c.phis += t.ways * results * results
		return
	}
	n := min(t.sets, uint64(len(c.locals)+c.p.globals)+2) + results
	c.phis += t.ways * n * n
}

func (c *coster) jump(start int, op byte) {
	c.weight++
	switch op {
	case opBr:
		c.branch(c.operand(start).u32())
	case opBrIf:
		c.move(1, 0)
		c.branch(c.operand(start).u32())
		return
	case opBrTable:
		c.move(1, 0)
		r := c.operand(start)
		before := c.top().now
		for n := uint64(r.u32()) + 1; n > 0 && c.f.err == nil; n-- {
			c.branch(r.u32())
			c.top().now = before
		}
	case opReturn:
		c.values += uint64(c.frames[0].results)
	}
	c.move(len(c.stack), 0)
	c.top().dead = true
	c.paths.stop()
}

// branch counts a branch to a label, and the node after it.
func (c *coster) branch(label uint32) {
	c.weight += 2
	if uint64(label) < uint64(len(c.frames)) {
		t := &c.frames[len(c.frames)-1-int(label)]
		if t.op == opLoop {
			c.values += uint64(t.params)
			c.phis += uint64(t.params * t.params)
			c.merges++
			c.dominators += c.top().now.dom
			c.edges += c.top().now.chain
		} else {
			c.arrive(t, c.top().now)
			c.paths.join(label)
		}
	}
	c.node(1)
}
