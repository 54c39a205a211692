package wasmbin

// stretch is what code may weigh from a check to the next one: where the heaviest
// path reaches it, there is one more. Longer ones would have a check take what few
// ways through large functions weigh (in Go and in interpreters one loop goes round all
// of it), and so come to the checkpoint too often.
const stretch = 768

// rest is what code may weigh from a call to the next check, where less than a stretch
// is left: each frame of a deep recursion has one to run when it comes back, without a
// check in between.
const rest = 128

// burden is what the heaviest paths to a place weigh.
type burden struct {
	now   uint64 // since the last check
	after uint64 // since a call that no check came after, and 1; 0: there is none
}

func (l *burden) meet(m burden) { l.now, l.after = max(l.now, m.now), max(l.after, m.after) }

// paths follows the ways through a function: what the heaviest of them weighs since
// the last check.
type paths struct {
	scopes []scope
	blocks []block
}

// scope is what checks pay for: a function outside of its loops, or a loop outside of
// those in it.
type scope struct {
	burden
	checks   []int  // edits
	heaviest uint64 // of any path from a check to the next
	dead     bool   // control flow does not come to here
	tight    tightness
}

// block is a block that is open.
type block struct {
	op        byte
	scope     int // that its end is in
	atEntry   burden
	deadEntry bool
	joined    burden // of the branches to its end
	reached   bool   // there are branches to its end
}

// begin begins a function.
func (p *paths) begin() {
	p.scopes = append(p.scopes[:0], scope{})
	p.blocks = append(p.blocks[:0], block{})
}

func (p *paths) top() *scope { return &p.scopes[len(p.scopes)-1] }

// add adds an instruction and reports whether there is to be a check before it.
func (p *paths) add(weight uint64) (full bool) {
	s := p.top()
	if s.dead {
		return false
	}
	full = s.now > 0 && s.now+weight > stretch || s.after > 1 && s.after+weight > rest
	if full {
		s.burden = burden{}
	}
	if s.now += weight; s.after > 0 {
		s.after += weight
	}
	s.heaviest = max(s.heaviest, s.now)
	return full
}

// called is after a call that may be part of a recursion.
func (p *paths) called() {
	for i := range p.scopes {
		p.scopes[i].after = max(p.scopes[i].after, 1)
	}
	p.top().after = 1
}

// enter opens a block, after its instruction was added. A loop has a check of its own.
func (p *paths) enter(op byte) {
	s := p.top()
	p.blocks = append(p.blocks, block{op: op, scope: len(p.scopes) - 1, atEntry: s.burden, deadEntry: s.dead})
	if op == opLoop {
		p.scopes = append(p.scopes, scope{dead: s.dead})
	}
}

func (p *paths) alternative() {
	b, s := &p.blocks[len(p.blocks)-1], p.top()
	if !s.dead {
		b.joined.meet(s.burden)
		b.reached = true
	}
	b.op = opElse
	s.burden, s.dead = b.atEntry, b.deadEntry
}

// leave closes a block, and returns the scope of a loop. The checks of a loop have
// paid for it, so what comes after it goes on as if it weighed nothing.
func (p *paths) leave() (loop scope, ok bool) {
	last := len(p.blocks) - 1
	b := p.blocks[last]
	p.blocks = p.blocks[:last]
	if b.op == opLoop {
		loop = *p.top()
		p.scopes = p.scopes[:len(p.scopes)-1]
		p.top().dead = loop.dead
		return loop, true
	}
	if b.op == opIf && !b.deadEntry { // without else
		b.joined.meet(b.atEntry)
		b.reached = true
	}
	s := p.top()
	switch {
	case !b.reached:
	case s.dead:
		s.burden, s.dead = b.joined, false
	default:
		s.meet(b.joined)
	}
	return scope{}, false
}

// stop is after an instruction that control flow does not go on from.
func (p *paths) stop() { p.top().dead = true }

// join joins a path to the end of a block. The scopes in between have paid for what
// is left behind in them. Back to a loop there is its check.
func (p *paths) join(label uint32) {
	b := &p.blocks[len(p.blocks)-1-int(label)]
	if b.op == opLoop || p.top().dead {
		return
	}
	b.joined.meet(p.scopes[b.scope].burden)
	b.reached = true
}
