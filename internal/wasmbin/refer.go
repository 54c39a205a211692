package wasmbin

import "encoding/binary"

// An engine makes a new object, which it keeps for as long as the instance, each time
// that code refers to a function (wazero 1.12, FunctionInstanceReference): a loop
// would take all memory of the host. So each function that code refers to gets an
// immutable global with the reference, which is made once, and code reads that.

// refer notes that code refers to a function.
func (p *parser) refer(i uint32) {
	if _, ok := p.refAt[i]; ok || uint64(i) >= uint64(len(p.funcs)) {
		return
	}
	if p.refAt == nil {
		p.refAt = map[uint32]uint32{}
	}
	p.refAt[i] = uint32(len(p.refs))
	p.refs = append(p.refs, i)
}

// references returns the globals that hold references: they come after the counter.
func (w *rewriter) references() (list [][]byte) {
	for _, i := range w.p.refs {
		g := binary.AppendUvarint([]byte{byte(FuncRef), 0, opRefFunc}, uint64(w.shifted(i)))
		list = append(list, append(g, opEnd))
	}
	return list
}

// reference reads the index of a function that is referred to outside of code, and
// returns its new one.
func (w *rewriter) reference(r *reader) uint32 {
	i := w.p.index(r, "function", len(w.p.funcs))
	if r.err == nil {
		w.declared[i] = true
	}
	return w.shifted(i)
}

// reference has code read the global of a function. One that nothing outside of code
// refers to must not be referred to (3.4.10): its global is not to make that valid.
func (p *planner) reference(start int, i uint32) {
	p.add(start, 1)
	if p.f.err != nil {
		return
	}
	if !p.w.declared[i] {
		p.f.failf("function %d is referred to, and not declared", i)
		return
	}
	p.edits = append(p.edits, edit{start: start, end: p.f.pos, kind: editRef, n: uint64(p.w.counter + 1 + p.w.p.refAt[i])})
}
