package tool

import (
	"fmt"
)

// object judges the members of an object. It goes through the keys that there
// are, never through those that a schema knows.
func (j *judge) object(r *rule, o *objectValue, seen *marks) bool {
	if f := between(len(o.keys), "members", r.MinProperties, r.MaxProperties); f != nil {
		return j.no(f)
	}
	if !j.has(o, r.required, said("is missing", "send it")) || !j.dependent(r, o, seen) {
		return false
	}
	if r.properties != nil || r.patterns != nil || r.additional != nil {
		if !j.room(seen, len(o.keys)) {
			return false
		}
		for i := range o.keys {
			if !j.member(r, o, i, seen) {
				return false
			}
		}
	}
	if r.names != nil {
		for _, key := range o.keys {
			if !j.try(r.names, textValue(key), nil) {
				return j.noMember(key, said("is not a name that is allowed (propertyNames)", "rename it"))
			}
		}
	}
	return r.restMembers == nil || j.unseen(seen, len(o.keys), func(i int) bool {
		return j.under(r.restMembers, o.keys[i], o.values[i])
	})
}

// has reports whether an object has all of some distinct keys.
func (j *judge) has(o *objectValue, keys []string, explain func() (string, string)) bool {
	// Of more keys than there are one is missing, and soon found.
	for _, key := range keys {
		if !j.spend(perKey) {
			return false
		}
		if o.index(key) < 0 {
			return j.noMember(key, explain)
		}
	}
	return true
}

// dependent follows the keywords that apply where an object has some key.
func (j *judge) dependent(r *rule, o *objectValue, seen *marks) bool {
	if r.dependents == nil && r.dependentKeys == nil {
		return true
	}
	for _, key := range o.keys {
		if !j.spend(perKey) || !j.has(o, r.dependentKeys[key], func() (string, string) {
			return fmt.Sprintf("is missing beside %q", brief(key)), "send it, too"
		}) {
			return false
		}
		if next := r.dependents[key]; next != nil && !j.fits(next, o, seen) {
			return false
		}
	}
	return true
}

// member judges one member of an object by properties, patternProperties and
// additionalProperties.
func (j *judge) member(r *rule, o *objectValue, i int, seen *marks) bool {
	if !j.spend(perKey) {
		return false
	}
	key, v := o.keys[i], o.values[i]
	next, known := r.properties[key]
	if known && !j.under(next, key, v) {
		return false
	}
	for _, p := range r.patterns {
		if !j.spend(p.cost(len(key))) {
			return false
		}
		if p.MatchString(key) {
			known = true
			if !j.under(p.rule, key, v) {
				return false
			}
		}
	}
	if !known && r.additional != nil {
		if r.additional.never {
			return j.noMember(key, func() (string, string) { return "is unknown", r.known() })
		}
		known = true
		if !j.under(r.additional, key, v) {
			return false
		}
	}
	if known {
		seen.note(i)
	}
	return true
}

// under judges the value under a key of the object at hand by one rule.
func (j *judge) under(r *rule, key string, v any) bool {
	j.path = append(j.path, token{key, -1})
	fits := j.fits(r, v, nil)
	j.path = j.path[:len(j.path)-1]
	return fits
}
