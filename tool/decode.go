package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// decoder turns nodes into values. It keeps the first error; what it returns
// after one is of no use.
type decoder struct {
	file string
	err  *ManifestError
}

// value is a node with the trail that leads to it. A value that is not in the
// document has no node, and a place nearby.
type value struct {
	d            *decoder
	n            *node
	trail        *trail
	line, column int
}

// trail is the way from the root of a document. It becomes text for errors
// only: for each value of a hostile document that would be much text.
type trail struct {
	up    *trail
	key   string
	index int // of an element of a list; negative for an entry of a mapping
}

// String returns the trail as requests.volumes[0].access.
func (t *trail) String() string {
	if t == nil {
		return ""
	}
	up := t.up.String()
	switch {
	case t.index >= 0:
		return up + "[" + strconv.Itoa(t.index) + "]"
	case up == "":
		return oneLine(t.key)
	}
	return up + "." + oneLine(t.key)
}

// at returns a value below v.
func (v value) at(key string, n *node, line, column int) value {
	return value{d: v.d, n: n, trail: &trail{up: v.trail, key: key, index: -1}, line: line, column: column}
}

// in returns the value of an entry of v.
func (v value) in(e entry) value { return v.at(e.key, e.value, e.line, e.column) }

func (d *decoder) root(n *node) value {
	return value{d: d, n: n, line: n.line, column: n.column}
}

// failed reports whether an error is recorded.
func (d *decoder) failed() bool { return d.err != nil }

func (v value) fail(problem, mend string) { v.failCause(problem, mend, nil) }

func (v value) failCause(problem, mend string, cause error) {
	if v.d.err == nil {
		v.d.err = &ManifestError{
			File: v.d.file, Line: v.line, Column: v.column,
			Field: v.trail.String(), Problem: problem, Mend: mend, cause: cause,
		}
	}
}

func (v value) present() bool { return v.n != nil }

func (v value) is(k kind, mend string) bool {
	if v.n == nil {
		return false
	}
	if v.n.kind != k {
		v.fail(fmt.Sprintf("is %s, want %s", v.n.kind, k), mend)
		return false
	}
	return true
}

// object returns the fields of a mapping. Fields other than the known ones are
// errors.
func (v value) object(known ...string) object { return v.fields(true, known) }

// open is object for mappings that may hold more fields than the known ones;
// known ones in another spelling are errors still.
func (v value) open(known ...string) object { return v.fields(false, known) }

func (v value) fields(strict bool, known []string) object {
	o := object{value: v}
	if !v.is(mapKind, "write fields below it") {
		return o
	}
	for _, e := range v.n.entries {
		if slices.Contains(known, e.key) {
			continue
		}
		at := v.in(e)
		if right := spelling(e.key, known); right != "" {
			at.fail("unknown spelling of "+right, "write "+right)
		} else if right := nearest(e.key, known); strict && right != "" {
			at.fail("unknown field", "did you mean "+right+"?")
		} else if strict {
			at.fail("unknown field", "remove it; known here: "+strings.Join(known, ", "))
		}
	}
	return o
}

// spelling returns the known name that key is another spelling of, or "".
func spelling(key string, known []string) string {
	plain := func(s string) string { return strings.NewReplacer("_", "", "-", "", " ", "").Replace(fold(s)) }
	for _, k := range known {
		if plain(key) == plain(k) {
			return k
		}
	}
	return ""
}

type object struct{ value }

// field returns the value of a key.
func (o object) field(key string) value {
	v := o.at(key, nil, o.line, o.column)
	if o.n == nil || o.n.kind != mapKind {
		return v
	}
	for _, e := range o.n.entries {
		if e.key == key {
			v.n, v.line, v.column = e.value, e.value.line, e.value.column
		}
	}
	return v
}

// each returns the values of a list.
func (v value) each(mend string) []value {
	if !v.is(listKind, mend) {
		return nil
	}
	items := make([]value, len(v.n.items))
	for i, n := range v.n.items {
		items[i] = value{d: v.d, n: n, trail: &trail{up: v.trail, index: i}, line: n.line, column: n.column}
	}
	return items
}

// text returns a text; empty ones are errors.
func (v value) text(mend string) string {
	if !v.is(stringKind, mend) {
		return ""
	}
	if v.n.text == "" {
		v.fail("is empty", mend)
	}
	return v.n.text
}

// truth returns a boolean.
func (v value) truth() bool { return v.is(boolKind, "write true or false") && v.n.truth }

// texts returns a list of distinct texts that ok accepts.
func (v value) texts(mend string, ok func(string) bool) []string {
	var list []string
	for _, item := range v.each(mend) {
		s := item.text(mend)
		switch {
		case s == "":
		case !ok(s):
			item.fail(quote(s)+" is not allowed", mend)
		case slices.Contains(list, s):
			item.fail(quote(s)+" is there twice", "remove one")
		}
		list = append(list, s)
	}
	return list
}

// size returns bytes between 0 and most, and whether the field is there.
func (v value) size(most int64) (int64, bool) {
	const mend = "write bytes as 65536, 64KiB, 64MiB or 1GiB"
	if v.n == nil {
		return 0, false
	}
	if v.n.kind != numberKind && v.n.kind != stringKind {
		v.fail(fmt.Sprintf("is %s, want a size", v.n.kind), mend)
		return 0, false
	}
	n, ok := parseSize(v.n.text)
	if !ok {
		v.fail(quote(v.n.text)+" is not a size", mend)
	} else if n > most {
		v.fail(fmt.Sprintf("%s is more than %d bytes", v.n.text, most), "lower it")
	}
	return n, true
}

// count returns a whole number between 0 and most.
func (v value) count(most uint64) uint64 {
	const mend = "write a whole number, 0 or more"
	if !v.is(numberKind, mend) {
		return 0
	}
	n, err := strconv.ParseUint(v.n.text, 10, 64)
	if err != nil {
		v.fail(v.n.text+" is not a whole number", mend)
	} else if n > most {
		v.fail(fmt.Sprintf("%d is more than %d", n, most), "lower it")
	}
	return n
}
