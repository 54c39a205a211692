package wasmbin

import "encoding/binary"

// unpaid returns what a function weighs that has no check of its own for it.
func (w *rewriter) unpaid(i uint32) uint64 {
	if i < w.imported || int(i-w.imported) >= len(w.light) {
		return 0
	}
	return uint64(w.light[i-w.imported])
}

// code returns the code section with checks.
func (w *rewriter) code(r *reader) []byte {
	w.weighLight(*r)
	n := r.count("function bodies", maxFuncs)
	out := make([]byte, 0, len(r.b)+len(r.b)/3)
	out = binary.AppendUvarint(out, uint64(n))
	for i := range n {
		f := r.sub(uint64(r.u32()))
		out = w.body(out, f, i)
		if r.err == nil {
			r.err = f.err
		}
		if r.err != nil {
			return nil
		}
	}
	return out
}

// weighLight notes what the light functions weigh: small ones that call nothing.
func (w *rewriter) weighLight(r reader) {
	n := r.count("function bodies", maxFuncs)
	light := make([]uint8, n)
	for i := range n {
		f := r.sub(uint64(r.u32()))
		if f.left() > lightBytes {
			continue
		}
		p := w.planner(f, i)
		heaviest := p.plan()
		if f.err == nil && !p.calling && heaviest <= lightWeight {
			light[i] = uint8(heaviest)
		}
		w.edits = p.edits
	}
	w.light = light
}

// planner begins a plan for the function body f, whose locals it reads.
func (w *rewriter) planner(f *reader, i int) *planner {
	params := w.p.types[w.p.funcs[int(w.imported)+i]].Params
	l := localTypes{params: params, n: uint64(len(params))}
	localRuns(f, func(n uint64, t ValueType) {
		l.n += n
		l.runs = append(l.runs, localRun{l.n, t})
	})
	return &planner{w: w, f: f, types: l, edits: w.edits[:0]}
}

// body appends a function body with its checks to out, after its size.
func (w *rewriter) body(out []byte, f *reader, i int) []byte {
	p := w.planner(f, i)
	decls := f.pos
	p.plan()
	w.edits = p.edits
	if f.err != nil {
		return out
	}
	b, from := w.scratch[:0], 0
	if p.extra {
		b, from = appendLocals(b, f.b[:decls]), decls
	}
	for _, e := range p.edits {
		b = append(b, f.b[from:e.start]...)
		b = w.edit(b, p, e)
		from = e.end
	}
	b = append(b, f.b[from:]...)
	w.scratch = b
	out = binary.AppendUvarint(out, uint64(len(b)))
	return append(out, b...)
}

// extraLocals are one for amounts, and two of tight loops: what is left of what
// they have paid, and what they paid last.
const extraLocals = 3

// appendLocals appends declarations of locals, with the extra ones.
func appendLocals(b, decls []byte) []byte {
	r := &reader{b: decls}
	n := r.u32()
	b = binary.AppendUvarint(b, uint64(n)+1)
	b = append(b, decls[r.pos:]...)
	return append(b, extraLocals, byte(I32))
}

// edit appends what an edit puts in.
func (w *rewriter) edit(b []byte, p *planner, e edit) []byte {
	local := uint32(p.types.n) // the first that appendLocals adds
	switch e.kind {
	case editNothing:
		return b
	case editIndex:
		return binary.AppendUvarint(b, e.n)
	case editRef:
		return appendIndex(b, opGlobalGet, uint32(e.n))
	case editCheck:
		b = w.take(b)
		b = appendSigned(append(b, opI64Const), int64(e.n))
		return w.check(b)
	case editOpen:
		return append(b, opBlock, 0x40, opLoop, 0x40, opBlock, 0x40)
	case editTight:
		return tightCheck(b, local+1, e.n)
	case editClose:
		set := p.copies[:e.n]
		p.copies = p.copies[e.n:]
		return w.tightClose(b, p, local+1, set)
	case editBulk:
		b = w.take(appendIndex(b, opLocalTee, local))
		b = append(appendIndex(b, opLocalGet, local), opI64ExtendU)
		b = append(b, opI64Const, byte(amountShift(uint32(e.n))), opI64ShrU)
		return w.check(b)
	case editGrow: // more pages than there are addresses for are refused: they weigh nothing
		b = w.take(appendIndex(b, opLocalTee, local))
		b = append(appendIndex(b, opLocalGet, local), opI64ExtendU)
		b = appendIndex(append(b, opI64Const, 0), opLocalGet, local)
		b = appendSigned(append(b, opI32Const), memoryPages)
		b = append(b, opI32LeU, opSelect, opI64Const, pageShift, opI64Shl)
		return w.check(b)
	}
	return b
}

// take appends the beginning of a check. What it takes goes between take and
// check.
func (w *rewriter) take(b []byte) []byte { return appendIndex(b, opGlobalGet, w.counter) }

// check appends the rest of a check. The call is in the second arm: wazero's
// compiler keeps registers as the first arm leaves them, so that a path without
// a call has nothing to put back.
func (w *rewriter) check(b []byte) []byte {
	b = appendIndex(append(b, opI64Sub), opGlobalSet, w.counter)
	b = appendIndex(b, opGlobalGet, w.counter)
	b = append(b, opI64Const, 0, opI64GeS, opIf, 0x40, opElse)
	b = appendIndex(b, opGlobalGet, w.counter)
	b = appendIndex(b, opCall, w.imported)
	return append(appendIndex(b, opGlobalSet, w.counter), opEnd)
}

func appendIndex(b []byte, op byte, i uint32) []byte {
	return binary.AppendUvarint(append(b, op), uint64(i))
}

// appendSigned appends a signed LEB128 number (5.2.2).
func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
