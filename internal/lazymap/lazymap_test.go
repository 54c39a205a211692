package lazymap

import (
	"slices"
	"testing"
)

// TestLazyMap: the first entry makes the map, and no keys cost nothing.
func TestLazyMap(t *testing.T) {
	var m map[string]int
	if n := testing.AllocsPerRun(10, func() {
		if Sorted(m) != nil {
			t.Error("keys of no map")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	Put(&m, "b", 1)
	Put(&m, "a", 2)
	Put(&m, "b", 3)
	if keys := Sorted(m); !slices.Equal(keys, []string{"a", "b"}) || m["b"] != 3 {
		t.Errorf("%v of %v", keys, m)
	}
}
