package wasmbin

// A loop that is innermost, calls nothing and weighs at most tightWeight would
// feel it if its check went to memory, and if the variables that it changes had
// to be on the stack for a call somewhere in it. So it pays for many rounds at a
// time, counts that down in a local, and is left to pay more: what was
//
//	loop
//	  …
//	end
//
// becomes
//
//	block $done
//	  loop $again
//	    block $pay
//	      loop
//	        if what is paid is used up, br $pay
//	        …
//	      end
//	      br $done
//	    end
//	    copy what the loop sets; pay
//	    br $again
//	  end
//	end
//
// The copies are values of their own to the compiler, so that it is they that
// it keeps on the stack for the call. What is paid doubles each time, as leaving
// the loop is a branch that the processor did not foresee; so what was paid and
// not used when the function returns is less than what was used, and the first
// payment.
const (
	tightWeight = 64
	tightFirst  = 128     // of what it pays, which doubles
	tightMost   = 1 << 15 // until it is above this
	tightSets   = 32      // locals that it may set
	tightLabels = 3       // blocks around it
)

// tightness is what is known of a loop that may be tight.
type tightness struct {
	not    bool
	leaves []int // edits of the branches that leave it
	set    []uint32
}

// sets notes that a local is set.
func (t *tightness) sets(local uint32) {
	if t.not {
		return
	}
	for _, i := range t.set {
		if i == local {
			return
		}
	}
	t.set = append(t.set, local)
	t.not = len(t.set) > tightSets
}

// tighten makes the loop that has just ended a tight one.
func (p *planner) tighten(loop scope) {
	p.extra = true
	p.edits[loop.checks[0]-1].kind = editOpen
	p.edits[loop.checks[0]].kind = editTight
	for _, i := range loop.tight.leaves {
		p.edits[i].n += tightLabels
	}
	p.copies = append(p.copies, loop.tight.set...)
	p.edits = append(p.edits, edit{start: p.f.pos, end: p.f.pos, kind: editClose, n: uint64(len(loop.tight.set))})
}

// tightCheck appends the check of a tight loop, which takes n.
func tightCheck(b []byte, paid uint32, n uint64) []byte {
	b = appendIndex(b, opLocalGet, paid)
	b = appendSigned(append(b, opI32Const), int64(n))
	b = appendIndex(append(b, opI32Sub), opLocalTee, paid)
	return append(b, opI32Const, 0, opI32GeS, opIf, 0x40, opElse, opBr, 2, opEnd)
}

// tightClose appends what comes after a tight loop.
func (w *rewriter) tightClose(b []byte, p *planner, paid uint32, set []uint32) []byte {
	b = append(b, opBr, tightLabels-1, opEnd)
	for _, i := range set {
		b = appendCopy(b, i, p.types.of(i))
	}
	fee := paid + 1
	b = appendIndex(b, opLocalGet, fee) // fee = fee < tightMost ? fee<<1 + tightFirst : fee
	b = append(b, opI32Const, 1, opI32Shl)
	b = append(appendSigned(append(b, opI32Const), tightFirst), opI32Add)
	b = appendIndex(appendIndex(b, opLocalGet, fee), opLocalGet, fee)
	b = append(appendSigned(append(b, opI32Const), tightMost), opI32LtU, opSelect)
	b = appendIndex(appendIndex(b, opLocalTee, fee), opLocalGet, paid)
	b = appendIndex(append(b, opI32Add), opLocalSet, paid)
	b = append(appendIndex(w.take(b), opLocalGet, fee), opI64ExtendU)
	b = w.check(b)
	return append(b, opBr, 0, opEnd, opEnd)
}

// appendCopy appends code that sets a local to itself, as a new value of the
// same bits.
func appendCopy(b []byte, local uint32, t ValueType) []byte {
	get := func() { b = appendIndex(b, opLocalGet, local) }
	switch t {
	case I32:
		get()
		b = append(b, opI32Const, 0, opI32Add)
	case I64:
		get()
		b = append(b, opI64Const, 0, opI64Add)
	case F32:
		get()
		b = append(b, opI32FromF32, opF32FromI32)
	case F64:
		get()
		b = append(b, opI64FromF64, opF64FromI64)
	case V128:
		get()
		get()
		b = append(b, opVector, vectorOr)
	case FuncRef, ExternRef: // nothing makes a new value of them
		return b
	}
	return appendIndex(b, opLocalSet, local)
}

// localTypes are the types of the locals of a function, parameters first.
type localTypes struct {
	params []ValueType
	runs   []localRun
	n      uint64
}

// localRun is a row of locals of one type, which ends before end.
type localRun struct {
	end uint64
	t   ValueType
}

// of returns the type of a local that exists.
func (l localTypes) of(i uint32) ValueType {
	if int(i) < len(l.params) {
		return l.params[i]
	}
	for _, r := range l.runs {
		if uint64(i) < r.end {
			return r.t
		}
	}
	return 0
}
