// Package lazymap has what maps need that are made with their first entry: most calls
// put nothing into most of them.
package lazymap

import "slices"

// Put writes to a map, which it makes where there is none yet.
func Put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// Sorted returns the keys of a map in order; nil of an empty one.
func Sorted[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
