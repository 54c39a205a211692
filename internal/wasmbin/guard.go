package wasmbin

import "encoding/binary"

// GuardOptions bound what a guarded module may declare. The zero value allows
// neither memory nor tables.
type GuardOptions struct {
	MaxMemory uint32 // pages of 64 KiB that a memory may start with
	MaxTables int    // tables, imported ones included
	MaxTable  uint32 // entries that a table may have, also after it grew
}

// Guard rewrites a module so that a host can interrupt and bound it. Engines
// look for a reason to stop at the header of a loop only, so that recursion
// without a loop, or a long row of calls and bulk instructions, would run on
// for ever. Guard gives each function that calls others, is large or has bulk
// instructions a loop header at its entry, and long ones more on the way; see
// plan. Each table gets a maximum of at most MaxTable entries. All else is
// left as it is, byte for byte, and guarding twice changes nothing more.
//
// Guard does not validate: the engine must validate what it returns, which is
// also what the engine then runs. Offsets of code in
// debug sections no longer fit. Errors are those of [Parse], a [*FormatError]
// for instructions beyond the core specification 2.0, and a [*LimitError]
// where the module declares more than o allows.
func Guard(b []byte, o GuardOptions) ([]byte, error) { return guarded(b, o, standard) }

func guarded(b []byte, o GuardOptions, w weights) ([]byte, error) {
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	if err := p.within(o); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b)+len(b)/8)
	out = append(out, b[:len(header)]...)
	for _, s := range p.sections {
		r := &reader{b: s.body, base: s.off}
		rewritten, changed := []byte(nil), false
		switch s.id {
		case sectionTable:
			rewritten, changed = capTables(r, o.MaxTable)
		case sectionCode:
			rewritten, changed = guardCode(r, w)
		}
		if r.err != nil {
			return nil, r.err
		}
		if !changed {
			out = append(out, b[s.start:s.off+len(s.body)]...)
			continue
		}
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(rewritten)))
		out = append(out, rewritten...)
	}
	return out, nil
}

// within checks what the module declares against the options.
func (p *parser) within(o GuardOptions) error {
	for _, m := range p.module.Memories {
		if m.Limits.Min > o.MaxMemory {
			return &LimitError{What: "memory pages", Have: uint64(m.Limits.Min), Max: uint64(o.MaxMemory)}
		}
	}
	if n := len(p.module.Tables); n > o.MaxTables {
		return &LimitError{What: "tables", Have: uint64(n), Max: uint64(max(0, o.MaxTables))}
	}
	for _, t := range p.module.Tables {
		if t.Limits.Min > o.MaxTable {
			return &LimitError{What: "table entries", Have: uint64(t.Limits.Min), Max: uint64(o.MaxTable)}
		}
	}
	return nil
}

// capTables returns the table section with no maximum above most, and whether
// it differs.
func capTables(r *reader, most uint32) (out []byte, changed bool) {
	n := r.count("tables", maxTables)
	out = binary.AppendUvarint(out, uint64(n))
	for range n {
		elem := refType(r)
		l := limits(r)
		if !l.HasMax || l.Max > most {
			l.Max, changed = most, true
		}
		out = append(out, byte(elem), 1)
		out = binary.AppendUvarint(out, uint64(l.Min))
		out = binary.AppendUvarint(out, uint64(l.Max))
	}
	return out, changed
}

// guardCode returns the code section with guards, and whether it differs.
func guardCode(r *reader, w weights) (out []byte, changed bool) {
	n := r.count("function bodies", maxFuncs)
	out = make([]byte, 0, len(r.b)+len(r.b)/8)
	out = binary.AppendUvarint(out, uint64(n))
	for range n {
		start := r.pos
		f := r.sub(uint64(r.u32()))
		localDecls(f)
		places := plan(f, w)
		if r.err == nil {
			r.err = f.err
		}
		if r.err != nil {
			return nil, false
		}
		if len(places) == 0 {
			out = append(out, r.b[start:r.pos]...)
			continue
		}
		changed = true
		out = binary.AppendUvarint(out, uint64(len(f.b)+len(places)*len(guard)))
		from := 0
		for _, at := range places {
			out = append(out, f.b[from:at]...)
			out = append(out, guard...)
			from = at
		}
		out = append(out, f.b[from:]...)
	}
	return out, changed
}
