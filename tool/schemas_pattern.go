package tool

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
)

// maxStates bounds the states of all patterns of a package: repetitions multiply
// them, each holds some memory, and each may be looked at for each character.
const maxStates = 1 << 16

// pattern is a regular expression with what it may cost.
type pattern struct {
	*regexp.Regexp
	states int
	width  int // states that one character is held against, at most
}

// patterns are the regular expressions of a package, each once.
type patterns struct {
	uncompiled bool // they are counted, and never matched
	states     int  // counted
	known      map[string]*pattern
}

var errPatterns = &flaw{"the patterns of the package are too large together, with their repetitions", "shorten them"}

// get returns a pattern, compiled unless they are only counted. What is too
// large is not compiled: states are counted as the pattern is written.
func (p *patterns) get(text string) (*pattern, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	source, err := fromECMA(text)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	states := statesOf(tree)
	if states > maxStates-p.states {
		return nil, errPatterns
	}
	p.states += states
	one := &pattern{states: states, width: states}
	if !p.uncompiled {
		if one, err = newPattern(source, tree); err != nil {
			return nil, err
		}
	}
	if p.known == nil {
		p.known = map[string]*pattern{}
	}
	p.known[text] = one
	return one, nil
}

func newPattern(source string, tree *syntax.Regexp) (*pattern, error) {
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(program.Inst), width(program)}, nil
}

// statesOf returns how many states a regular expression has at most when it is
// compiled, and what its classes hold, at the size of a state.
func statesOf(tree *syntax.Regexp) int {
	n, classes := countStates(tree)
	return n + classes + 2 // a start and an end
}

func countStates(re *syntax.Regexp) (n, classes int) {
	const most = 1 << 24 // of which sums do not overflow
	for _, sub := range re.Sub {
		k, c := countStates(sub)
		n, classes = n+k, classes+c
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = max(len(re.Rune), 1)
	case syntax.OpCharClass:
		n, classes = 1, len(re.Rune)/16
	case syntax.OpRepeat:
		// Each time but the last of those that may be left out is a choice.
		n = n*max(re.Min, re.Max, 1) + max(re.Max-re.Min, 0) + 2
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpCapture:
		n += 2
	case syntax.OpConcat:
		n = max(n, 1)
	default:
		n = 1
	}
	return min(n, most), min(classes, most)
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
