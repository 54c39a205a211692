package tool

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// textValue, listValue and *objectValue are the values that are judged, with
// nil, bool, int64 and decimalValue.
type (
	textValue string
	listValue []any
)

// objectValue is an object whose members are in the order they came.
type objectValue struct {
	keys    []string
	values  []any
	folds   []uint64       // of keys; nil where case counts
	indexes map[uint64]int // by fold; nil: there are few keys, or case counts
	byKey   map[string]int // where case counts; nil: there are few keys
	room    struct {       // for the first of each, with the object
		keys   [fewMembers]string
		values [fewMembers]any
		folds  [fewMembers]uint64
	}
}

const fewMembers = 2

func newObject() *objectValue {
	o := &objectValue{}
	o.keys, o.values, o.folds = o.room.keys[:0], o.room.values[:0], o.room.folds[:0]
	return o
}

// unindexed is how many keys are looked through as fast as a map is made.
const unindexed = 8

// index returns where a key is; -1: nowhere.
func (o *objectValue) index(key string) int {
	switch {
	case o.indexes != nil:
		if i, ok := o.indexes[foldOf(key)]; ok && o.keys[i] == key {
			return i
		}
		return -1
	case o.byKey != nil:
		if i, ok := o.byKey[key]; ok {
			return i
		}
		return -1
	}
	return slices.Index(o.keys, key)
}

// like returns where a key is that is the same but for its case; -1: nowhere.
func (o *objectValue) like(key string, fold uint64) int {
	i, ok := o.indexes[fold]
	if o.indexes == nil {
		i = slices.Index(o.folds, fold)
		ok = i >= 0
	}
	if ok && strings.EqualFold(o.keys[i], key) {
		return i
	}
	return -1
}

// get returns the value under a key.
func (o *objectValue) get(key string) (any, bool) {
	i := o.index(key)
	if i < 0 {
		return nil, false
	}
	return o.values[i], true
}

// add appends a member where case counts.
func (o *objectValue) add(key string, v any) {
	o.keys, o.values = append(o.keys, key), append(o.values, v)
	if o.byKey != nil {
		o.byKey[key] = len(o.keys) - 1
	} else if len(o.keys) > unindexed {
		o.byKey = make(map[string]int, 4*unindexed)
		for i, k := range o.keys {
			o.byKey[k] = i
		}
	}
}

// addFolded appends a member whose key is like no other.
func (o *objectValue) addFolded(key string, fold uint64, v any) {
	o.keys, o.values, o.folds = append(o.keys, key), append(o.values, v), append(o.folds, fold)
	if o.indexes != nil {
		o.indexes[fold] = len(o.keys) - 1
	} else if len(o.keys) > unindexed {
		o.indexes = make(map[uint64]int, 4*unindexed)
		for i, f := range o.folds {
			o.indexes[f] = i
		}
	}
}

// MarshalJSON writes the members in the order they came.
func (o *objectValue) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := json.Marshal(o.values[i])
		if err != nil {
			return nil, err
		}
		b = append(append(appendString(b, key), ':'), v...)
	}
	return append(b, '}'), nil
}

var foldSeed = maphash.MakeSeed()

// foldOf returns a number that is the same for texts that differ by case only,
// and hardly for others.
func foldOf(s string) uint64 {
	var short [64]byte
	b := short[:0]
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if least, ok := leastFolds()[r]; ok {
			r = least
		}
		b = utf8.AppendRune(b, r)
	}
	return maphash.Bytes(foldSeed, b)
}

// leastFolds returns, for each character beyond ASCII that has another case, the
// least of those that are the same but for case.
var leastFolds = sync.OnceValue(func() map[rune]rune {
	m := map[rune]rune{}
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if least != r {
			m[r] = least
		}
	}
	return m
})
