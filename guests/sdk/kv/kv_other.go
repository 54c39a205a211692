//go:build !wasip1

package kv

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
)

// memory are the keys where there is no host to keep them.
var memory = struct {
	sync.Mutex
	values map[string][]byte
}{values: map[string][]byte{}}

// Reset removes all keys. It is there only in programs that are built for the
// machine itself.
func Reset() {
	memory.Lock()
	defer memory.Unlock()
	clear(memory.values)
}

// Get returns the value of a key, and whether there is one.
func Get(key string) (value []byte, ok bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	memory.Lock()
	defer memory.Unlock()
	value, ok = memory.values[key]
	return slices.Clone(value), ok, nil
}

// Put gives a key a value.
func Put(key string, value []byte) error {
	if err := checkPut(key, value); err != nil {
		return err
	}
	memory.Lock()
	defer memory.Unlock()
	memory.values[key] = append([]byte{}, value...)
	return nil
}

// Delete removes a key. One that is not there is no error.
func Delete(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	memory.Lock()
	defer memory.Unlock()
	delete(memory.values, key)
	return nil
}

// Append puts data behind the value of a key, which is made where there is none.
// Nothing appended changes nothing.
func Append(key string, data []byte) error {
	if err := checkPut(key, data); err != nil {
		return err
	}
	memory.Lock()
	defer memory.Unlock()
	old := memory.values[key]
	switch {
	case len(data) == 0:
		return nil
	case len(old)+len(data) > MaxValue:
		return ErrTooLarge
	}
	memory.values[key] = slices.Concat(old, data)
	return nil
}

// Increment adds to the number that a key holds, in decimal digits, and returns
// the sum. A key that is not there counts as 0.
func Increment(key string, by int64) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	memory.Lock()
	defer memory.Unlock()
	old, ok := memory.values[key]
	var n int64
	if ok {
		var err error
		if n, err = number(old); err != nil {
			return 0, err
		}
	}
	switch {
	case by > 0 && n > math.MaxInt64-by, by < 0 && n < math.MinInt64-by:
		return 0, ErrOverflow
	case by == 0:
		return n, nil
	}
	memory.values[key] = strconv.AppendInt(nil, n+by, 10)
	return n + by, nil
}

// number reads a value as the host does: only what it writes itself is one.
func number(value []byte) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(value) {
		return 0, ErrNotNumber
	}
	return n, nil
}

// Scan returns the entries of the keys from `from` (included) to `to` (excluded;
// empty: to the last), sorted by their bytes, at most limit; a limit below 1 is
// none.
func Scan(from, to string, limit int) ([]Entry, error) {
	memory.Lock()
	defer memory.Unlock()
	list := []Entry{}
	for _, key := range slices.Sorted(maps.Keys(memory.values)) {
		if key < from || to != "" && key >= to {
			continue
		}
		if limit > 0 && len(list) == limit {
			break
		}
		list = append(list, Entry{key, slices.Clone(memory.values[key])})
	}
	return list, nil
}
