package tool

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

const (
	// maxJudging bounds what judging one value costs, about in bytes that the
	// validator reads and writes: nothing stops it once it is at work, and
	// alternatives that lie in one another multiply.
	maxJudging = 16 << 20
	perRule    = 64 // what one schema costs on one value, at least
)

// weigher walks a value along the rules that judge it, before they do. It finds
// names that are another spelling of a property that is declared there, and
// stops where judging would cost too much.
type weigher struct {
	cost  int
	names bool // look for spellings
}

// load says how often each rule judges one value.
type load map[*rule]int

func (w *weigher) tooMuch() *fault {
	return &fault{"", "too much to be judged by this schema, with its alternatives", "send less at once"}
}

// visit weighs one value and what is in it.
func (w *weigher) visit(at *spot, v any, entering load) *fault {
	judging := load{}
	for r, n := range entering {
		if f := w.add(judging, r, n, v, 0); f != nil {
			return f
		}
	}
	switch v := v.(type) {
	case objectValue:
		return w.object(at, v, judging)
	case listValue:
		for i, e := range v {
			inner := load{}
			for r, n := range judging {
				for _, next := range r.items(i) {
					inner[next] += n
				}
			}
			if f := w.visit(&spot{up: at, index: i, list: true}, e, inner); f != nil {
				return f
			}
		}
	}
	return nil
}

// add charges for n judgements of v by r and by those that judge with it.
func (w *weigher) add(to load, r *rule, n int, v any, depth int) *fault {
	each := perRule + r.text
	switch v := v.(type) {
	case textValue:
		each += len(v)
	case listValue:
		each += len(v)
		if r.UniqueItems {
			each += size(v)
		}
	case objectValue:
		each += len(v)
	}
	if n > (maxJudging-w.cost)/each || depth > maxWork {
		return w.tooMuch()
	}
	w.cost += n * each
	to[r] += n
	for _, next := range r.same {
		if f := w.add(to, next, n, v, depth+1); f != nil {
			return f
		}
	}
	return nil
}

func (w *weigher) object(at *spot, o objectValue, judging load) *fault {
	if w.names {
		if f := misspelt(at, o, judging); f != nil {
			return f
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		inner, named := load{}, load{}
		for r, n := range judging {
			for _, next := range r.members(key) {
				inner[next] += n
			}
			if r.names != nil {
				named[r.names] += n
			}
		}
		here := &spot{up: at, key: key}
		if f := w.visit(here, textValue(key), named); f != nil {
			return f
		}
		if f := w.visit(here, o[key], inner); f != nil {
			return f
		}
	}
	return nil
}

// misspelt finds a key that a reader which matches keys without case takes for
// a property that is declared for this object, and the validator does not.
func misspelt(at *spot, o objectValue, judging load) *fault {
	declared := map[string]string{}
	exact := map[string]bool{}
	for r := range judging {
		for name := range r.properties {
			declared[strictyaml.Fold(name)] = name
			exact[name] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if name, ok := declared[strictyaml.Fold(key)]; ok && !exact[key] {
			return &fault{(&spot{up: at, key: key}).pointer(), fmt.Sprintf("another spelling of %q", brief(name)), fmt.Sprintf("send %q", brief(name))}
		}
	}
	return nil
}

// members returns the rules that judge the value under a key of an object.
func (r *rule) members(key string) []*rule {
	rules := slices.Clone(r.anyMember)
	p, named := r.properties[key]
	if named {
		rules = append(rules, p)
	}
	for _, p := range r.patterns {
		if p.MatchString(key) {
			rules = append(rules, p.rule)
			named = true
		}
	}
	if !named && r.additional != nil {
		rules = append(rules, r.additional)
	}
	return rules
}

// items returns the rules that judge an item of a list.
func (r *rule) items(i int) []*rule {
	rules := slices.Clone(r.anyItem)
	switch {
	case i < len(r.prefix):
		rules = append(rules, r.prefix[i])
	case r.rest != nil:
		rules = append(rules, r.rest)
	}
	return rules
}

// weigh reports what speaks against judging a value by the schema: a key that is
// another spelling of a property, or the cost.
func (g *graph) weigh(v any, spellings bool) *fault {
	w := &weigher{names: spellings && g.suspect(v)}
	if !w.names && !g.branches {
		return nil // each value is judged once
	}
	return w.visit(nil, v, load{g.root: 1})
}

// suspect reports whether a value holds a key that is a declared name only
// without regard to case, or one of several declared names that are.
func (g *graph) suspect(v any) bool {
	switch v := v.(type) {
	case listValue:
		return slices.ContainsFunc(v, g.suspect)
	case objectValue:
		for key, e := range v {
			if !g.plain[key] && g.declared[strictyaml.Fold(key)] != "" || g.suspect(e) {
				return true
			}
		}
	}
	return false
}
