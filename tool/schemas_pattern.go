package tool

import (
	"errors"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
)

// maxStates bounds the states of all patterns of a schema: repetitions multiply
// them, and each may be looked at for each character.
const maxStates = 1 << 16

// pattern is a regular expression with what it may cost.
type pattern struct {
	*regexp.Regexp
	states int
	width  int // states that one character is held against, at most
}

// newPattern compiles a regular expression of at most so many states.
func newPattern(text string, most int) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	states := len(program.Inst)
	if states > most {
		return nil, errors.New("the patterns are too large, with their repetitions")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re, states, width(program)}, nil
}

// cost returns the steps that a match against n bytes takes at most.
func (p *pattern) cost(n int) int {
	if n >= math.MaxInt/p.width-8 {
		return math.MaxInt
	}
	return (n + 8) * p.width
}

// width returns how many states of a program one character is held against. A
// program that is anchored at the start, and in which each character leads to
// one state at most, looks at those between that one and the next; any other at
// all, in the worst case.
func width(p *syntax.Prog) int {
	all := len(p.Inst)
	if p.StartCond()&syntax.EmptyBeginText == 0 {
		return all
	}
	const most = 1 << 20 // states looked at here
	widest, looked := 1, 0
	entries := []uint32{uint32(p.Start)}
	for i := range p.Inst {
		if consumes(&p.Inst[i]) {
			entries = append(entries, p.Inst[i].Out)
		}
	}
	for _, entry := range entries {
		next, n := closure(p, entry)
		if looked += n; looked > most || overlap(p, next) {
			return all
		}
		widest = max(widest, n)
	}
	return (widest + 3) / 4 // where there is one way only, four are as fast as one
}

func consumes(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// closure returns the states that take a character next, and how many lie on the
// way to them.
func closure(p *syntax.Prog, entry uint32) (next []uint32, n int) {
	seen := map[uint32]bool{}
	stack := []uint32{entry}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		switch i := &p.Inst[at]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			stack = append(stack, i.Out)
		default:
			if consumes(i) {
				next = append(next, at)
			}
		}
	}
	return next, len(seen)
}

// overlap reports whether two states take the same character.
func overlap(p *syntax.Prog, states []uint32) bool {
	var ranges [][2]rune
	for _, at := range states {
		i := &p.Inst[at]
		switch {
		case i.Op == syntax.InstRuneAny || i.Op == syntax.InstRuneAnyNotNL:
			ranges = append(ranges, [2]rune{0, unicode.MaxRune})
		case len(i.Rune) == 1:
			r := i.Rune[0]
			ranges = append(ranges, [2]rune{r, r})
			if syntax.Flags(i.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					ranges = append(ranges, [2]rune{f, f})
				}
			}
		default:
			for k := 0; k+1 < len(i.Rune); k += 2 {
				ranges = append(ranges, [2]rune{i.Rune[k], i.Rune[k+1]})
			}
		}
	}
	slices.SortFunc(ranges, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	for k := 1; k < len(ranges); k++ {
		if ranges[k][0] <= ranges[k-1][1] {
			return true
		}
	}
	return false
}
