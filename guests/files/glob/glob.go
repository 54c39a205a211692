// Package glob matches paths against the patterns of npm's minimatch, with its
// option dot: * and ? do not cross a slash and match names that begin with a dot,
// ** is any number of folders, and there are [classes], {braces}, extended
// patterns as in +(a|b), a leading ! that turns the answer around, and a leading #
// that never matches. Two of its mistakes are not repeated: \| within an extended
// pattern is the character, and !(a|) excludes a and nothing.
package glob

import (
	"fmt"
	"slices"
	"strings"
)

// maxPattern is minimatch's own bound, in bytes here.
const maxPattern = 64 << 10

// Pattern is a compiled pattern. The zero value matches nothing.
type Pattern struct {
	negate bool
	sets   [][]part // one of them must match
}

// part is what one name of a path must match.
type part struct {
	globstar bool // any number of names
	name     matcher
}

// matcher decides on one name, which is not empty and neither "." nor "..".
type matcher func(name string) bool

// Compile returns the pattern. It fails only where the pattern is too long.
func Compile(pattern string) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes: want at most %d", len(pattern), maxPattern)
	}
	if pattern == "" || pattern[0] == '#' {
		return &Pattern{}, nil
	}
	p := &Pattern{}
	rest := strings.TrimLeft(pattern, "!")
	p.negate = (len(pattern)-len(rest))%2 == 1
	for _, one := range expand(rest) {
		p.sets = append(p.sets, compileSet(one))
	}
	return p, nil
}

// compileSet compiles a pattern without braces.
func compileSet(pattern string) []part {
	var names []string
	for strings.Contains(pattern, "//") {
		pattern = strings.ReplaceAll(pattern, "//", "/")
	}
	for name := range strings.SplitSeq(pattern, "/") {
		last := ""
		if len(names) > 0 {
			last = names[len(names)-1]
		}
		switch {
		case name == "**" && last == "**":
		case name == ".." && last != "" && last != ".." && last != "." && last != "**":
			names = names[:len(names)-1]
		default:
			names = append(names, name)
		}
	}
	parts := make([]part, len(names))
	for i, name := range names {
		parts[i] = part{globstar: name == "**"}
		if !parts[i].globstar {
			parts[i].name = compileName(name)
		}
	}
	return parts
}

// Match reports whether a path matches: names with one slash between them, none of
// them empty, "." or "..".
func (p *Pattern) Match(path string) bool {
	if p.sets == nil {
		return false
	}
	names := strings.Split(path, "/")
	return slices.ContainsFunc(p.sets, func(s []part) bool { return matchAll(s, names) }) != p.negate
}

// matchAll walks parts and names together. Where it fails, the last globstar takes
// one name more: the first place where what follows a globstar fits is as good as
// any later one.
func matchAll(parts []part, names []string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for j < len(names) {
		switch {
		case i < len(parts) && parts[i].globstar:
			star, from = i, j
			i++
			if i == len(parts) {
				return true
			}
		case i < len(parts) && parts[i].name(names[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return i == len(parts) // a globstar at the end wants a name
}

// compileName compiles the pattern of one name.
func compileName(pattern string) matcher {
	stars := strings.TrimLeft(pattern, "*")
	switch {
	case !strings.ContainsAny(pattern, `*?[\+@!(`):
		return func(name string) bool { return name == pattern }
	case stars == "":
		return func(string) bool { return true }
	case len(stars) < len(pattern) && !strings.ContainsAny(stars, `*?[\+@!(`):
		return func(name string) bool { return strings.HasSuffix(name, stars) }
	}
	s := parseName(pattern)
	s.link(nil)
	return func(name string) bool { return s.matches(name) }
}
