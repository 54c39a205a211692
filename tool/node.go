package tool

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

// kind is the JSON type of a node.
type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	listKind
	mapKind
)

func (k kind) String() string {
	switch k {
	case nullKind:
		return "nothing"
	case boolKind:
		return "true or false"
	case numberKind:
		return "a number"
	case stringKind:
		return "text"
	case listKind:
		return "a list"
	case mapKind:
		return "a mapping"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// node is a value of a document, YAML or JSON, with where it stands.
type node struct {
	kind         kind
	line, column int
	truth        bool
	text         string // the text, or the number as JSON spells it
	items        []*node
	entries      []entry // in the order of the document, keys distinct
}

type entry struct {
	key          string
	line, column int
	value        *node
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapKind {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// json returns the node as JSON without white space, keys in the order of the
// document or sorted.
func (n *node) json(sorted bool) []byte { return n.appendJSON(nil, sorted) }

func (n *node) appendJSON(b []byte, sorted bool) []byte {
	switch n.kind {
	case nullKind:
		return append(b, "null"...)
	case boolKind:
		return strconv.AppendBool(b, n.truth)
	case numberKind:
		return append(b, n.text...)
	case stringKind:
		return appendText(b, n.text)
	case listKind:
		b = append(b, '[')
		for i, v := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.appendJSON(b, sorted)
		}
		return append(b, ']')
	case mapKind:
		return n.appendMap(b, sorted)
	}
	return b
}

func (n *node) appendMap(b []byte, sorted bool) []byte {
	entries := n.entries
	if sorted {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, func(x, y entry) int { return strings.Compare(x.key, y.key) })
	}
	b = append(b, '{')
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, e.key)
		b = append(b, ':')
		b = e.value.appendJSON(b, sorted)
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
func (n *node) twin() (entry, string, bool) {
	seen := make(map[string]string, len(n.entries))
	for _, e := range n.entries {
		f := fold(e.key)
		if other, ok := seen[f]; ok {
			return e, other, true
		}
		seen[f] = e.key
	}
	return entry{}, "", false
}

// fold maps keys that differ only by case to one, as encoding/json does.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
