package additive

import (
	"hash/maphash"

	"github.com/sandboxd/sandboxd/capabilities"
)

// pair is one file before and after.
type pair struct {
	m          *meter
	old, new   *source
	same       int64 // bytes that both have in front
	whole, end int64 // documents in these, and where the last one ends
	script     bool  // the operating system may run it
	appendOnly bool  // the operator says so
	exceptions []exception
	requested  []exception
}

// verdict is what a rule says about a pair.
type verdict struct {
	format  Format
	verb    capabilities.Verb
	why     string   // what was lost; empty: nothing
	pointer string   // where in the file, if known
	relaxed []string // exceptions that were needed
	covered string   // the requested exception that would have allowed the loss
	binary  bool     // the loss is that of a format without a rule
}

func lost(f Format, why string) verdict {
	return verdict{format: f, verb: capabilities.Overwrite, why: why}
}

// judge applies the rule of the old content's format.
func (p *pair) judge() verdict {
	if p.old.size == 0 {
		return verdict{format: NoFormat, verb: capabilities.Append}
	}
	p.same = prefix(p.old, p.new)
	seed := maphash.MakeSeed()
	fork, was := newScan(p.old, seed).classFork(&twin{p.new, p.same})
	if p.m.err != nil {
		return verdict{}
	}
	if !was.json && !was.lines {
		return p.other()
	}
	if fork == nil || p.same < 3 { // there a byte order mark may have come or gone
		fork = newScan(p.new, seed)
	}
	p.whole, p.end = fork.whole, fork.end
	is := fork.class()
	switch {
	case p.m.err != nil:
		return verdict{}
	case !was.json:
		return p.records(is, seed)
	}
	if was.lines && is.lines && !is.json {
		// To a document that is still one, the rule of records adds nothing but
		// another reading of pointers.
		if v := p.records(is, seed); v.why == "" {
			return v
		}
		if p.m.err != nil {
			return verdict{}
		}
	}
	return p.document(is, seed)
}

func (p *pair) document(is class, seed maphash.Seed) verdict {
	if !is.json {
		return lost(JSON, whyNotJSON)
	}
	return p.match(JSON, seed, (*matcher).value)
}

func (p *pair) records(is class, seed maphash.Seed) verdict {
	switch {
	case !is.lines:
		return lost(JSONLines, whyNotLines)
	case p.script && !p.grown():
		return lost(JSONLines, whyScript)
	}
	return p.match(JSONLines, seed, func(x *matcher) bool {
		if p.whole > 0 {
			x.back(p.end, p.end) // the first place of an equal record is its own
		}
		return x.elements(true, int(p.whole))
	})
}

func (p *pair) matcher(seed maphash.Seed) *matcher {
	return &matcher{
		m: p.m, seed: seed, exceptions: p.exceptions,
		old: newCursor(p.old, afterMark(p.old)), new: newCursor(p.new, afterMark(p.new)),
	}
}

func (p *pair) match(f Format, seed maphash.Seed, rule func(*matcher) bool) verdict {
	x := p.matcher(seed)
	if rule(x) {
		v := verdict{format: f, verb: p.verb(x.added && !x.between)}
		for _, i := range x.relaxed {
			v.relaxed = append(v.relaxed, p.exceptions[i].written)
			v.verb = capabilities.Overwrite
		}
		return v
	}
	if p.m.err != nil {
		return verdict{}
	}
	again := newMeter(p.m.ctx, p.old.size+p.new.size) // to tell what was lost may cost as much once more
	p.old.m, p.new.m = again, again
	x = p.matcher(seed)
	x.m, x.fault = again, &fault{}
	rule(x)
	v := p.explain(f, x)
	if again.err != nil {
		p.m.fail(again.err)
	}
	p.old.m, p.new.m = p.m, p.m
	return v
}

func (p *pair) explain(f Format, x *matcher) verdict {
	m := x.fault.miss
	v := lost(f, whyLost(m))
	x.path = x.path[:m.depth]
	v.pointer = x.pointer()
	if i := x.excepted(p.requested, m.from, m.to, m.old, m.new); i >= 0 {
		v.covered = p.requested[i].written
	}
	return v
}

// verb returns what was done where nothing was lost.
func (p *pair) verb(behind bool) capabilities.Verb {
	if behind || p.same == p.old.size {
		return capabilities.Append
	}
	return capabilities.Insert
}

// other judges what is no JSON.
func (p *pair) other() verdict {
	old := isText(p.old)
	if p.m.err != nil {
		return verdict{}
	}
	if !old {
		return p.binary()
	}
	switch {
	case !isText(p.new):
		return lost(Text, whyNotText)
	case afterMark(p.old) != afterMark(p.new):
		return lost(Text, whyMark)
	case (p.script || p.hashbang()) && !p.grown():
		return lost(Text, whyScript)
	}
	x := lineMatcher{m: p.m, old: newCursor(p.old, afterMark(p.old)), new: newCursor(p.new, afterMark(p.new))}
	if !x.lines() {
		return lost(Text, whyLine(x.line+1))
	}
	return verdict{format: Text, verb: p.verb(x.added && !x.between)}
}

func (p *pair) binary() verdict {
	switch {
	case !p.appendOnly:
		v := lost(Binary, whyBinary)
		v.binary = true
		return v
	case p.same < p.old.size:
		return lost(Binary, whyPrefix)
	}
	return verdict{format: Binary, verb: capabilities.Append}
}

// grown reports whether the new content is the old one and whole lines after it.
func (p *pair) grown() bool {
	if p.same < p.old.size {
		return false
	}
	var last [1]byte
	if !p.old.read(last[:], p.old.size-1) || last[0] == '\n' {
		return true
	}
	return newCursor(p.new, p.old.size).lineEnd() >= 0
}

func (p *pair) hashbang() bool {
	var b [2]byte
	return p.old.size >= 2 && p.old.read(b[:], 0) && string(b[:]) == "#!"
}
