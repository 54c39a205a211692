package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Kind is the JSON type of a node.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
)

// String returns what a user calls it: "a list".
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case Text:
		return "text"
	case List:
		return "a list"
	case Map:
		return "a mapping"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Node is a value of a document, YAML or JSON, with where it stands.
type Node struct {
	Kind         Kind
	Line, Column int // from 1, columns in bytes
	Truth        bool
	Text         string // the text, or the number as JSON spells it
	Items        []*Node
	Entries      []Entry // in the order of the document, keys distinct
}

// Entry is a key of a mapping, where it stands, and its value.
type Entry struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// JSON returns the node as JSON without white space, keys in the order of the
// document or sorted.
func (n *Node) JSON(sorted bool) []byte { return n.appendJSON(nil, sorted) }

func (n *Node) appendJSON(b []byte, sorted bool) []byte {
	switch n.Kind {
	case Null:
		return append(b, "null"...)
	case Bool:
		return strconv.AppendBool(b, n.Truth)
	case Number:
		return append(b, n.Text...)
	case Text:
		return appendText(b, n.Text)
	case List:
		b = append(b, '[')
		for i, v := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.appendJSON(b, sorted)
		}
		return append(b, ']')
	case Map:
		return n.appendMap(b, sorted)
	}
	return b
}

func (n *Node) appendMap(b []byte, sorted bool) []byte {
	entries := n.Entries
	if sorted {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, func(x, y Entry) int { return strings.Compare(x.Key, y.Key) })
	}
	b = append(b, '{')
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, e.Key)
		b = append(b, ':')
		b = e.Value.appendJSON(b, sorted)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(w.Bytes(), []byte("\n"))...)
}

// number returns the text of a number as JSON spells it, and whether it is one
// that every JSON reader can hold (finite as a 64-bit float).
func number(s string) (string, bool) {
	if json.Valid([]byte(s)) && strings.Trim(s, "+-.0123456789eE") == "" {
		f, err := strconv.ParseFloat(s, 64)
		return s, err == nil && !math.IsInf(f, 0)
	}
	return "", false
}

// twin returns two distinct keys of a mapping that readers of JSON which match
// keys without case, such as encoding/json, take for one.
func (n *Node) twin() (Entry, string, bool) {
	seen := make(map[string]string, len(n.Entries))
	for _, e := range n.Entries {
		f := Fold(e.Key)
		if other, ok := seen[f]; ok {
			return e, other, true
		}
		seen[f] = e.Key
	}
	return Entry{}, "", false
}

// Fold maps keys that differ only by case to one, as encoding/json does.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
