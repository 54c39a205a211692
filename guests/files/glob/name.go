package glob

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNesting is how deep extended patterns lie in one another; a deeper one is text.
const maxNesting = 3

// sequenceOf is a pattern of a name, or an alternative of an extended one.
type sequenceOf []node

// node is one element of a pattern.
type node struct {
	kind  kind
	text  string       // of literal
	class *class       // of one
	alts  []sequenceOf // of the extended kinds
	tails []sequenceOf // of not: the alternatives with all that follows in the name
}

type kind uint8

const (
	literal    kind = iota
	one             // one character, of the class where there is one
	many            // any characters
	exactly         // @(a|b)
	optional        // ?(a|b)
	repeated        // *(a|b)
	oneOrMore       // +(a|b)
	not             // !(a|b)
	impossible      // a class that nothing is in
)

var extended = map[byte]kind{'@': exactly, '?': optional, '*': repeated, '+': oneOrMore, '!': not}

// parseName parses the pattern of one name. Every pattern is one.
func parseName(pattern string) sequenceOf {
	p := &parser{text: pattern}
	s, _ := p.sequence(0)
	return s
}

type parser struct {
	text string
	at   int
}

// sequence parses up to the end, or in an extended pattern to the | or ) after it,
// which ended reports.
func (p *parser) sequence(depth int) (s sequenceOf, ended bool) {
	for p.at < len(p.text) {
		c := p.text[p.at]
		if depth > 0 && (c == '|' || c == ')') {
			return s, true
		}
		if n, ok := p.extended(depth); ok {
			s = append(s, n)
			continue
		}
		p.at++
		switch c {
		case '\\':
			if p.at < len(p.text) {
				_, size := utf8.DecodeRuneInString(p.text[p.at:])
				s = s.literal(p.text[p.at : p.at+size])
				p.at += size
			} else {
				s = s.literal(`\`)
			}
		case '*':
			if len(s) == 0 || s[len(s)-1].kind != many {
				s = append(s, node{kind: many})
			}
		case '?':
			s = append(s, node{kind: one})
		case '[':
			if c, size := parseClass(p.text[p.at:]); size > 0 {
				p.at += size
				s = append(s, c)
			} else {
				s = s.literal("[")
			}
		default:
			s = s.literal(p.text[p.at-1 : p.at])
		}
	}
	return s, false
}

// literal appends text to the literal at the end.
func (s sequenceOf) literal(text string) sequenceOf {
	if n := len(s); n > 0 && s[n-1].kind == literal {
		s[n-1].text += text
		return s
	}
	return append(s, node{kind: literal, text: text})
}

// extended parses an extended pattern; where there is none, or one that is not
// closed, nothing was read.
func (p *parser) extended(depth int) (node, bool) {
	k, ok := extended[p.text[p.at]]
	if !ok || depth == maxNesting || !strings.HasPrefix(p.text[p.at+1:], "(") {
		return node{}, false
	}
	start := p.at
	p.at += 2
	n := node{kind: k}
	for {
		s, ended := p.sequence(depth + 1)
		if !ended {
			p.at = start
			return node{}, false
		}
		n.alts = append(n.alts, s)
		p.at++
		if p.text[p.at-1] == ')' {
			return n, true
		}
	}
}

// link tells each negation what follows it: it excludes an alternative only where
// the rest of the name then matches, too.
func (s sequenceOf) link(rest sequenceOf) {
	for i := range s {
		after := slices.Concat(s[i+1:], rest)
		for _, alt := range s[i].alts {
			alt.link(after)
			if s[i].kind == not {
				s[i].tails = append(s[i].tails, slices.Concat(alt, after))
			}
		}
	}
}

// ends is where in a name a pattern may have come to, by offset.
type ends []bool

// matches reports whether the whole name matches.
func (s sequenceOf) matches(name string) bool {
	from := make(ends, len(name)+1)
	from[0] = true
	return s.step(name, from)[len(name)]
}

// step returns where the sequence can end when it begins at one of from. All places
// go on together, so that the time is bounded by the product of the lengths.
func (s sequenceOf) step(name string, from ends) ends {
	for i := range s {
		if !slices.Contains(from, true) {
			return from
		}
		from = s[i].step(name, from)
	}
	return from
}

func (n *node) step(name string, from ends) ends {
	to := make(ends, len(from))
	switch n.kind {
	case literal:
		for i, ok := range from {
			if ok && strings.HasPrefix(name[i:], n.text) {
				to[i+len(n.text)] = true
			}
		}
	case one:
		for i, ok := range from {
			if !ok || i == len(name) {
				continue
			}
			if r, size := utf8.DecodeRuneInString(name[i:]); n.class == nil || n.class.has(r) {
				to[i+size] = true
			}
		}
	case many:
		for i := slices.Index(from, true); i < len(to); i++ {
			to[i] = true
		}
	case exactly:
		n.alternatives(name, from, to)
	case optional:
		n.alternatives(name, from, to)
		to.add(from)
	case repeated:
		n.closure(name, from, to)
		to.add(from)
	case oneOrMore:
		n.closure(name, from, to)
	case not:
		n.excluded(name, from, to)
	case impossible:
	}
	return to
}

// add adds places and reports whether one is new.
func (e ends) add(more ends) bool {
	grew := false
	for i, ok := range more {
		if ok && !e[i] {
			e[i], grew = true, true
		}
	}
	return grew
}

// alternatives adds where one of them can end, and reports whether that is new.
func (n *node) alternatives(name string, from, to ends) bool {
	grew := false
	for _, alt := range n.alts {
		grew = to.add(alt.step(name, slices.Clone(from))) || grew
	}
	return grew
}

// closure adds where one or more of the alternatives can end.
func (n *node) closure(name string, from, to ends) {
	for n.alternatives(name, from, to) {
		from = slices.Clone(to)
	}
}

// excluded adds where what is none of the alternatives can end.
func (n *node) excluded(name string, from, to ends) {
	for i, ok := range from {
		if !ok {
			continue
		}
		start := make(ends, len(from))
		start[i] = true
		if slices.ContainsFunc(n.tails, func(s sequenceOf) bool { return s.step(name, start)[len(name)] }) {
			continue
		}
		for j := i; j < len(to); j++ {
			to[j] = true
		}
	}
}
