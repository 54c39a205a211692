package strictyaml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decoder turns nodes into values of Go. It keeps the first error; what its
// values return after one is of no use.
type Decoder struct {
	file string
	err  *Error
}

// NewDecoder returns a decoder whose errors name the file.
func NewDecoder(file string) *Decoder { return &Decoder{file: file} }

// File returns the name that errors have.
func (d *Decoder) File() string { return d.file }

// Failed reports whether an error is recorded.
func (d *Decoder) Failed() bool { return d.err != nil }

// Err returns the first error, an [*Error], or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// Root returns the value of a document.
func (d *Decoder) Root(n *Node) Value {
	return Value{d: d, Node: n, Line: n.Line, Column: n.Column}
}

// Value is a node with the trail that leads to it. A value that is not in the
// document has no node, and a place nearby.
type Value struct {
	Node         *Node
	Trail        *Trail
	Line, Column int

	d *Decoder
}

// Trail is the way from the root of a document. It becomes text for errors
// only: for each value of a hostile document that would be much text.
type Trail struct {
	up    *Trail
	key   string
	index int // of an element of a list; negative for an entry of a mapping
}

// String returns the trail as requests.volumes[0].access.
func (t *Trail) String() string {
	if t == nil {
		return ""
	}
	up := t.up.String()
	switch {
	case t.index >= 0:
		return up + "[" + strconv.Itoa(t.index) + "]"
	case up == "":
		return OneLine(t.key)
	}
	return up + "." + OneLine(t.key)
}

func (v Value) at(key string, n *Node, line, column int) Value {
	return Value{d: v.d, Node: n, Trail: &Trail{up: v.Trail, key: key, index: -1}, Line: line, Column: column}
}

// In returns the value of an entry of v, placed at its key.
func (v Value) In(e Entry) Value { return v.at(e.Key, e.Value, e.Line, e.Column) }

// Field returns the value of a key, placed at the value.
func (v Value) Field(key string) Value {
	f := v.at(key, nil, v.Line, v.Column)
	if n := v.Node.Get(key); n != nil {
		f.Node, f.Line, f.Column = n, n.Line, n.Column
	}
	return f
}

// Required is Field for one that must be there.
func (v Value) Required(key string) Value {
	f := v.Field(key)
	if !f.Present() && v.Present() {
		f.Fail("is missing", "add it")
	}
	return f
}

// Items returns the values of a list, and none for anything else.
func (v Value) Items() []Value {
	if v.Node == nil || v.Node.Kind != List {
		return nil
	}
	items := make([]Value, len(v.Node.Items))
	for i, n := range v.Node.Items {
		items[i] = Value{d: v.d, Node: n, Trail: &Trail{up: v.Trail, index: i}, Line: n.Line, Column: n.Column}
	}
	return items
}

// Fail records what is wrong with the value, and how it is mended.
func (v Value) Fail(problem, mend string) { v.FailCause(problem, mend, nil) }

// FailCause is Fail with a cause for errors.Is.
func (v Value) FailCause(problem, mend string, cause error) {
	if v.d.err == nil {
		v.d.err = &Error{
			File: v.d.file, Line: v.Line, Column: v.Column,
			Field: v.Trail.String(), Problem: problem, Mend: mend, Cause: cause,
		}
	}
}

// Failed reports whether an error is recorded, of whatever value.
func (v Value) Failed() bool { return v.d.Failed() }

// Present reports whether the value is in the document.
func (v Value) Present() bool { return v.Node != nil }

// Is reports whether the value is there and of a kind; another kind is an error.
func (v Value) Is(k Kind, mend string) bool {
	if v.Node == nil {
		return false
	}
	if v.Node.Kind != k {
		v.Fail(fmt.Sprintf("is %s, want %s", v.Node.Kind, k), mend)
		return false
	}
	return true
}

// Object returns a mapping; fields other than the known ones are errors.
func (v Value) Object(known ...string) Value { return v.fields(true, known) }

// Open is Object for mappings that may hold more fields than the known ones;
// known ones in another spelling are errors still.
func (v Value) Open(known ...string) Value { return v.fields(false, known) }

func (v Value) fields(strict bool, known []string) Value {
	if !v.Is(Map, "write fields below it") {
		return v
	}
	for _, e := range v.Node.Entries {
		if slices.Contains(known, e.Key) {
			continue
		}
		at := v.In(e)
		if right := spelling(e.Key, known); right != "" {
			at.Fail("unknown spelling of "+right, "write "+right)
		} else if right := nearest(e.Key, known); strict && right != "" {
			at.Fail("unknown field", "did you mean "+right+"?")
		} else if strict {
			at.Fail("unknown field", "remove it; known here: "+strings.Join(known, ", "))
		}
	}
	return v
}

// NoTwins refuses keys that differ by case only, anywhere below: readers that
// match keys without case would take one for the other.
func (v Value) NoTwins() {
	if v.Node == nil || v.Failed() {
		return
	}
	if e, other, ok := v.Node.twin(); ok {
		at := Value{d: v.d, Trail: v.Trail, Line: e.Line, Column: e.Column}
		at.Fail("the keys "+Quote(e.Key)+" and "+Quote(other)+" differ by case only", "rename one")
	}
	for _, e := range v.Node.Entries {
		v.In(e).NoTwins()
	}
	for _, item := range v.Items() {
		item.NoTwins()
	}
}

// Each returns the values of a list; another kind is an error.
func (v Value) Each(mend string) []Value {
	if !v.Is(List, mend) {
		return nil
	}
	return v.Items()
}

// Text returns a text; empty ones are errors.
func (v Value) Text(mend string) string {
	if !v.Is(Text, mend) {
		return ""
	}
	if v.Node.Text == "" {
		v.Fail("is empty", mend)
	}
	return v.Node.Text
}

// Pattern returns a text that ok accepts.
func (v Value) Pattern(ok func(string) bool, mend string) string {
	s := v.Text(mend)
	if v.Node != nil && !v.Failed() && !ok(s) {
		v.Fail(Quote(s)+" is not allowed", mend)
	}
	return s
}

// OneOf returns one of the known texts, of which there are two or more.
func (v Value) OneOf(known ...string) string {
	last := len(known) - 1
	mend := "write " + strings.Join(known[:last], ", ") + " or " + known[last]
	return v.Pattern(func(s string) bool { return slices.Contains(known, s) }, mend)
}

// Shown returns a text that people and models read: of limited length in bytes,
// without hidden characters, on one line unless lines are allowed.
func (v Value) Shown(most int, lines bool, mend string) string {
	if !v.Is(Text, mend) {
		return ""
	}
	s := v.Node.Text
	if len(s) > most {
		v.Fail(fmt.Sprintf("longer than %d bytes", most), "shorten it")
	}
	if h := HiddenIn(s); h != "" {
		v.Fail("holds "+h, "remove it")
	}
	if !lines && strings.ContainsAny(s, "\n\r") {
		v.Fail("has more than one line", mend)
	}
	return s
}

// Truth returns a boolean.
func (v Value) Truth() bool { return v.Is(Bool, "write true or false") && v.Node.Truth }

// Texts returns a list of distinct texts that ok accepts.
func (v Value) Texts(mend string, ok func(string) bool) []string {
	var list []string
	for _, item := range v.Each(mend) {
		s := item.Text(mend)
		switch {
		case s == "":
		case !ok(s):
			item.Fail(Quote(s)+" is not allowed", mend)
		case slices.Contains(list, s):
			item.Fail(Quote(s)+" is there twice", "remove one")
		}
		list = append(list, s)
	}
	return list
}

// Size returns bytes between 0 and most, and whether the field is there.
func (v Value) Size(most int64) (int64, bool) {
	const mend = "write bytes as 65536, 64KiB, 64MiB or 1GiB"
	if v.Node == nil {
		return 0, false
	}
	if v.Node.Kind != Number && v.Node.Kind != Text {
		v.Fail(fmt.Sprintf("is %s, want a size", v.Node.Kind), mend)
		return 0, false
	}
	n, ok := ParseSize(v.Node.Text)
	if !ok {
		v.Fail(Quote(v.Node.Text)+" is not a size", mend)
	} else if n > most {
		v.Fail(fmt.Sprintf("%s is more than %d bytes", v.Node.Text, most), "lower it")
	}
	return n, true
}

// Count returns a whole number between 0 and most.
func (v Value) Count(most uint64) uint64 {
	const mend = "write a whole number, 0 or more"
	if !v.Is(Number, mend) {
		return 0
	}
	n, err := strconv.ParseUint(v.Node.Text, 10, 64)
	if err != nil {
		v.Fail(v.Node.Text+" is not a whole number", mend)
	} else if n > most {
		v.Fail(fmt.Sprintf("%d is more than %d", n, most), "lower it")
	}
	return n
}

// Duration returns a duration between 0 and most. A bare 0 is one too.
func (v Value) Duration(most time.Duration) time.Duration {
	const mend = "write a duration as 5s, 1m30s or 30d"
	if v.Node == nil || v.Node.Kind == Number && v.Node.Text == "0" {
		return 0
	}
	s := v.Text(mend)
	n, ok := ParseDuration(s)
	if !ok {
		v.Fail(Quote(s)+" is not a duration", mend)
	} else if n > most {
		v.Fail(Quote(s)+" is more than "+most.String(), "lower it")
	}
	return n
}
