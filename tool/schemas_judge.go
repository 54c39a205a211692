package tool

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// maxSteps bounds what judging one value costs, whatever the schema. A step is
	// a part of a look at one value or key, eight bytes of a text, or one state of
	// a pattern against one byte: 3 to 30 ns, together some 0.2 s at most.
	maxSteps = 8 << 20
	perRule  = 4 // steps that one rule takes on one value, whatever both are
	perKey   = 3 // steps to find a key

	// maxDepth bounds the rules that wait for one another: each holds some stack.
	maxDepth = 10_000
)

const tooMuch = "too much to be judged by this schema"

// judge holds one value against the rules of a graph, and counts its steps.
// It is used once.
type judge struct {
	*graph
	most   int  // steps
	steps  int  // taken
	over   bool // the steps are used up, and what it says since is void
	depth  int
	tries  int // alternatives that are being tried: one that does not fit is no fault
	path   []token
	fault  *fault // the first that no alternative makes good
	buffer []byte
}

// token is one step into a value.
type token struct {
	key   string
	index int // of a list; -1: key
}

// judge returns why a value does not fit. With spellings, no key may be another
// spelling of a property that is declared for its object.
func (g *graph) judge(v any, spellings bool) *fault {
	f, _ := g.within(maxSteps, v, spellings)
	return f
}

// within judges in so many steps, and returns those that it took.
func (g *graph) within(steps int, v any, spellings bool) (*fault, int) {
	j := &judge{graph: g, most: steps}
	if spellings && g.suspect(v) {
		j.spelt(v, []*rule{g.root})
	}
	fits := j.fault == nil && j.fits(g.root, v, nil)
	switch {
	case j.over:
		return &fault{"", tooMuch, "send less at once"}, j.steps
	case fits:
		return nil, j.steps
	case j.fault == nil:
		return &fault{"", "does not fit the schema", ""}, j.steps
	}
	return j.fault, j.steps
}

// spend takes steps, and reports whether there were as many.
func (j *judge) spend(n int) bool {
	if n > j.most-j.steps {
		j.over = true
		return false
	}
	j.steps += n
	return !j.over
}

// no refuses the value at hand. What it says is made only where it is the fault.
func (j *judge) no(explain func() (problem, mend string)) bool {
	if j.tries == 0 && j.fault == nil && !j.over {
		problem, mend := explain()
		j.fault = &fault{j.pointer(), problem, mend}
	}
	return false
}

// noMember refuses a key of the object at hand.
func (j *judge) noMember(key string, explain func() (problem, mend string)) bool {
	j.path = append(j.path, token{key, -1})
	j.no(explain)
	j.path = j.path[:len(j.path)-1]
	return false
}

func said(problem, mend string) func() (string, string) {
	return func() (string, string) { return problem, mend }
}

// pointer returns the place of the value at hand as a JSON pointer (RFC 6901).
func (j *judge) pointer() string {
	var b strings.Builder
	for _, t := range j.path {
		b.WriteByte('/')
		if t.index >= 0 {
			b.WriteString(strconv.Itoa(t.index))
		} else {
			b.WriteString(pointerToken(t.key))
		}
	}
	return b.String()
}

// fits reports whether a value keeps to a rule, and notes in seen which of its
// members and items the rule has judged. seen may be nil.
func (j *judge) fits(r *rule, v any, seen *marks) bool {
	if j.depth == maxDepth {
		j.over = true
	}
	if !j.spend(perRule) {
		return false
	}
	if r.never {
		return j.no(said("is not allowed here", "leave it out"))
	}
	j.depth++
	defer func() { j.depth-- }()
	var own *marks
	if j.unevaluated {
		own = &marks{}
	}
	if r.ref != nil {
		if !j.fits(r.ref, v, own) {
			return false
		}
		if j.draft7 {
			return true // beside $ref, nothing counts
		}
	}
	if !j.itself(r, v) || !j.inPlace(r, v, own) {
		return false
	}
	switch v := v.(type) {
	case listValue:
		if !j.list(r, v, own) {
			return false
		}
	case *objectValue:
		if !j.object(r, v, own) {
			return false
		}
	}
	return j.merge(seen, own)
}

// try is fits where a value that does not is no fault yet.
func (j *judge) try(r *rule, v any, seen *marks) bool {
	j.tries++
	defer func() { j.tries-- }()
	return j.fits(r, v, seen)
}

// inPlace follows the keywords that hold other rules against the same value.
func (j *judge) inPlace(r *rule, v any, seen *marks) bool {
	if r.dynamicRef != nil && !j.fits(r.dynamicRef, v, seen) {
		return false
	}
	for _, next := range r.allOf {
		if !j.fits(next, v, seen) {
			return false
		}
	}
	if r.AnyOf != nil && !j.anyOf(r, v, seen) || r.OneOf != nil && !j.oneOf(r, v, seen) {
		return false
	}
	if r.not != nil && j.try(r.not, v, nil) {
		return j.no(said("is what the schema excludes (not)", ""))
	}
	if r.cond == nil {
		return true
	}
	next := r.otherwise
	if j.try(r.cond, v, seen) {
		next = r.then
	}
	return next == nil || j.fits(next, v, seen)
}

func (j *judge) anyOf(r *rule, v any, seen *marks) bool {
	fits := false
	for _, next := range r.anyOf {
		if j.try(next, v, seen) {
			fits = true
			if seen == nil {
				break // else each may judge other members
			}
		}
	}
	return fits || j.no(said("fits none of the alternatives (anyOf)", ""))
}

func (j *judge) oneOf(r *rule, v any, seen *marks) bool {
	fit := 0
	for _, next := range r.oneOf {
		if j.try(next, v, seen) {
			fit++
		}
		if fit > 1 {
			return j.no(said("fits more than one of the alternatives (oneOf)", ""))
		}
	}
	return fit == 1 || j.no(said("fits none of the alternatives (oneOf)", ""))
}

// item judges one item of the list at hand.
func (j *judge) item(r *rule, i int, v any) bool {
	j.path = append(j.path, token{index: i})
	fits := j.fits(r, v, nil)
	j.path = j.path[:len(j.path)-1]
	return fits
}

func (j *judge) list(r *rule, l listValue, seen *marks) bool {
	if f := between(len(l), "items", r.MinItems, r.MaxItems); f != nil {
		return j.no(f)
	}
	for i, next := range r.prefix[:min(len(r.prefix), len(l))] {
		if !j.item(next, i, l[i]) {
			return false
		}
	}
	if r.rest != nil {
		for i := len(r.prefix); i < len(l); i++ {
			if !j.item(r.rest, i, l[i]) {
				return false
			}
		}
		seen.every()
	} else if !j.first(seen, min(len(r.prefix), len(l)), len(l)) {
		return false
	}
	if r.contains != nil && !j.holds(r, l, seen) || r.UniqueItems && !j.unique(l) {
		return false
	}
	return r.restItems == nil || j.unseen(seen, len(l), func(i int) bool { return j.item(r.restItems, i, l[i]) })
}

// holds counts the items that fit contains.
func (j *judge) holds(r *rule, l listValue, seen *marks) bool {
	if !j.room(seen, len(l)) {
		return false
	}
	n, least := 0, 1
	if r.MinContains != nil {
		least = *r.MinContains
	}
	for i, e := range l {
		if j.try(r.contains, e, nil) {
			n++
			seen.note(i)
		}
		if j.over {
			return false
		}
	}
	switch {
	case n < least:
		return j.no(said(fmt.Sprintf("holds %d items that fit contains, less than %d", n, least), "add some"))
	case r.MaxContains != nil && n > *r.MaxContains:
		return j.no(said(fmt.Sprintf("holds %d items that fit contains, more than %d", n, *r.MaxContains), "remove some"))
	}
	return true
}

// unique reports whether no two items are equal.
func (j *judge) unique(l listValue) bool {
	first := make(map[string]int, len(l))
	for i, e := range l {
		j.buffer = j.identity(j.buffer[:0], e)
		if j.over || !j.spend(perRule+len(j.buffer)/8) {
			return false
		}
		if k, twice := first[string(j.buffer)]; twice {
			return j.no(said(fmt.Sprintf("holds the same at %d and %d", k, i), "send it once"))
		}
		first[string(j.buffer)] = i
	}
	return true
}
