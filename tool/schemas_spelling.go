package tool

import (
	"fmt"
	"slices"
	"strings"
)

// suspect reports whether a value holds a key that is a declared name only
// without regard to case, or one of several declared names that are.
func (g *graph) suspect(v any) bool {
	switch v := v.(type) {
	case listValue:
		return slices.ContainsFunc(v, g.suspect)
	case *objectValue:
		for i, key := range v.keys {
			if name, ok := g.declared[v.folds[i]]; ok && strings.EqualFold(name, key) && !g.plain[key] || g.suspect(v.values[i]) {
				return true
			}
		}
	}
	return false
}

// spelt finds a key that a reader which matches keys without case takes for a
// property that is declared for its object, and the rules do not. It follows
// the rules that may judge a value, whether they will or not.
func (j *judge) spelt(v any, rules []*rule) {
	switch v := v.(type) {
	case listValue:
		judging := j.together(rules)
		for i, e := range v {
			j.speltIn(token{index: i}, e, func() (next []*rule) {
				for _, r := range judging {
					next = append(next, j.forItem(r, i)...)
				}
				return next
			})
		}
	case *objectValue:
		judging := j.together(rules)
		for i, key := range v.keys {
			if name := j.meant(judging, key, v.folds[i]); name != "" {
				j.noMember(key, said(fmt.Sprintf("another spelling of %q", brief(name)), fmt.Sprintf("send %q", brief(name))))
			}
			j.speltIn(token{key, -1}, v.values[i], func() (next []*rule) {
				for _, r := range judging {
					next = append(next, j.forMember(r, key)...)
				}
				return next
			})
		}
	}
}

// speltIn goes on to a value that lies in another, where it has keys to look at.
func (j *judge) speltIn(at token, v any, rules func() []*rule) {
	switch v.(type) {
	case listValue, *objectValue:
	default:
		return
	}
	if j.over || j.fault != nil {
		return
	}
	j.path = append(j.path, at)
	j.spelt(v, rules())
	j.path = j.path[:len(j.path)-1]
}

// together returns rules with those that judge the same values, each once.
func (j *judge) together(rules []*rule) (all []*rule) {
	seen := map[*rule]bool{}
	for len(rules) > 0 {
		r := rules[len(rules)-1]
		rules = rules[:len(rules)-1]
		if !j.spend(3 * perRule) {
			return nil
		}
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
			rules = append(rules, r.same...)
		}
	}
	return all
}

// meant returns the property that a key is another spelling of; "" for none.
func (j *judge) meant(judging []*rule, key string, fold uint64) (name string) {
	for _, r := range judging {
		if !j.spend(2) {
			return ""
		}
		if _, exact := r.properties[key]; exact {
			return ""
		}
		if other, ok := r.folded[fold]; ok && strings.EqualFold(other, key) {
			name = other
		}
	}
	return name
}

// forMember returns the rules that may judge the value under a key.
func (j *judge) forMember(r *rule, key string) (rules []*rule) {
	if !j.spend(2) {
		return nil
	}
	rules = present(r.restMembers)
	p, named := r.properties[key]
	if named {
		rules = append(rules, p)
	}
	for _, p := range r.patterns {
		if !j.spend(p.cost(len(key))) {
			return nil
		}
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

// forItem returns the rules that may judge an item of a list.
func (j *judge) forItem(r *rule, i int) []*rule {
	if !j.spend(2) {
		return nil
	}
	rules := present(r.contains, r.restItems)
	switch {
	case i < len(r.prefix):
		rules = append(rules, r.prefix[i])
	case r.rest != nil:
		rules = append(rules, r.rest)
	}
	return rules
}
