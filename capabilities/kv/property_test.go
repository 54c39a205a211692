package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/enough"
)

// step is one operation of a call in a property test.
type step struct {
	op, key, to, value string
	n                  int
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "a\x00", "ab", "b", "é", "\xff", "\xff\xfe", "n1", "n2"}).Draw(t, "key")
}

func drawStep(t *rapid.T) step {
	return step{
		op:    rapid.SampledFrom([]string{"get", "put", "delete", "append", "increment", "scan", "scan"}).Draw(t, "op"),
		key:   drawKey(t),
		to:    rapid.SampledFrom([]string{"", "", "b", "n2", "\xff", "\xff\xff"}).Draw(t, "to"),
		value: rapid.SampledFrom([]string{"", "1", "12", "x", "-3", "9223372036854775807", "007"}).Draw(t, "value"),
		n:     rapid.SampledFrom([]int{0, 1, 1, -1, 2, 40, math.MaxInt, math.MinInt}).Draw(t, "n"),
	}
}

func drawValues(t *rapid.T, label string) map[string]string {
	return rapid.MapOfN(rapid.Custom(drawKey), rapid.SampledFrom([]string{"1", "12", "x", "9223372036854775807"}), 0, 6).Draw(t, label)
}

// answer is what a guest sees of a step.
func (s step) answer(ctx context.Context, o *Overlay) string {
	switch s.op {
	case "get":
		v, ok, err := o.Get(ctx, s.key)
		return fmt.Sprintf("%q %v %v", v, ok, err)
	case "put":
		return fmt.Sprint(o.Put(ctx, s.key, []byte(s.value)))
	case "delete":
		return fmt.Sprint(o.Delete(ctx, s.key))
	case "append":
		return fmt.Sprint(o.Append(ctx, s.key, []byte(s.value)))
	case "increment":
		n, err := o.Increment(ctx, s.key, int64(s.n))
		return fmt.Sprint(n, err)
	}
	list, err := o.Scan(ctx, s.key, s.to, s.limit())
	return shown(list) + fmt.Sprint(err)
}

func (s step) limit() int { return min(max(s.n, 0), 50) }

func shown(list []Entry) string {
	var s string
	for _, e := range list {
		s += fmt.Sprintf("%q=%q ", e.Key, e.Value)
	}
	return s
}

// model does the same on a map, plainly.
func (s step) model(m map[string]string) string {
	old, ok := m[s.key]
	switch s.op {
	case "get":
		return fmt.Sprintf("%q %v %v", old, ok, nil)
	case "put":
		m[s.key] = s.value
		return fmt.Sprint(nil)
	case "delete":
		delete(m, s.key)
		return fmt.Sprint(nil)
	case "append":
		if s.value != "" {
			m[s.key] = old + s.value
		}
		return fmt.Sprint(nil)
	case "increment":
		return s.increment(m, old, ok)
	}
	var list []Entry
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k >= s.key && (s.to == "" || k < s.to) && len(list) < s.limit() {
			list = append(list, Entry{Key: k, Value: []byte(m[k])})
		}
	}
	return shown(list) + fmt.Sprint(nil)
}

func (s step) increment(m map[string]string, old string, ok bool) string {
	n, err := strconv.Atoi(old)
	switch {
	case ok && (err != nil || strconv.Itoa(n) != old):
		return fmt.Sprint(0, ErrNotNumber)
	case s.n > 0 && n > math.MaxInt-s.n, s.n < 0 && n < math.MinInt-s.n:
		return fmt.Sprint(0, ErrOverflow)
	case s.n != 0:
		m[s.key] = strconv.Itoa(n + s.n)
	}
	return fmt.Sprint(n+s.n, nil)
}

// What a call sees, what its result is and what its change leaves is what a map
// would have; also where the change was written as JSON in between.
func TestOverlayIsMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		start := drawValues(rt, "start")
		s := fill(t, start)
		o := begin(t, s, roomy())
		m := maps.Clone(start)
		for _, st := range rapid.SliceOfN(rapid.Custom(drawStep), 0, 12).Draw(rt, "steps") {
			if got, want := st.answer(t.Context(), o), st.model(m); got != want {
				rt.Fatalf("%+v = %s, want %s", st, got, want)
			}
		}
		if got := held(t, o.Result()); !maps.Equal(got, m) {
			rt.Fatalf("result %q, want %q", got, m)
		}
		c, err := o.Change()
		must(t, err)
		var again Change
		b, err := json.Marshal(c)
		must(t, err)
		must(t, json.Unmarshal(b, &again))
		if c.Empty() != maps.Equal(start, m) || len(o.Left()) != len(c.Writes) {
			rt.Fatalf("%q to %q: %+v", start, m, c)
		}
		_, err = s.Commit(t.Context(), &store.Commit{ID: fmt.Sprint(next()), Guards: again.Guards, Ranges: again.Ranges, Writes: again.Writes})
		must(t, err)
		if got := held(t, base(t, s)); !maps.Equal(got, m) {
			rt.Fatalf("committed %q, want %q", got, m)
		}
		var size int64
		for k, v := range m {
			size += int64(len(StoreName(k)) + len(v))
		}
		u, err := o.Usage(t.Context())
		must(t, err)
		for k, v := range start {
			size -= int64(len(StoreName(k)) + len(v))
		}
		if want := (store.Usage{Keys: int64(len(m) - len(start)), Bytes: size}); u != want {
			rt.Fatalf("grew by %+v, want %+v", u, want)
		}
	})
}

// A call that commits after another one is as if it had run after it: it would
// have seen the same, and left the same.
func TestSerialisable(t *testing.T) {
	committed, conflicts := 0, 0
	enough.Check(t, func(rt *rapid.T) {
		s := fill(t, drawValues(rt, "start"))
		o := begin(t, s, roomy())
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 5).Draw(rt, "steps")
		var saw []string
		for _, st := range steps {
			saw = append(saw, st.answer(t.Context(), o))
		}
		other := drawValues(rt, "other")
		if rapid.Bool().Draw(rt, "delete") {
			other[drawKey(rt)] = ""
		}
		save(t, s, other)

		after := begin(t, s, roomy())
		for i, st := range steps {
			if got := st.answer(t.Context(), after); got != saw[i] {
				saw = nil
				break
			}
		}
		left := held(t, after.Result())
		switch err := commit(t, s, o); {
		case err != nil:
			conflicts++
		case saw == nil:
			rt.Fatalf("committed what it would not have seen")
		case !maps.Equal(held(t, base(t, s)), left):
			rt.Fatalf("left %q, want %q", held(t, base(t, s)), left)
		default:
			committed++
		}
	}, func() string {
		if committed == 0 || conflicts == 0 {
			return fmt.Sprintf("%d committed, %d conflicts", committed, conflicts)
		}
		return ""
	})
}

// The second run of an idempotent call, over the result of the first, sees what
// it would see after the commit.
func TestResultIsAsCommitted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := fill(t, drawValues(rt, "start"))
		first := begin(t, s, roomy())
		draw := rapid.SliceOfN(rapid.Custom(drawStep), 0, 6)
		for _, st := range draw.Draw(rt, "first") {
			st.answer(t.Context(), first)
		}
		must(t, commit(t, s, first))
		shadow, real := NewOverlay(first.Result(), roomy()), begin(t, s, roomy())
		for _, st := range draw.Draw(rt, "second") {
			if a, b := st.answer(t.Context(), shadow), st.answer(t.Context(), real); a != b {
				rt.Fatalf("%+v: %s over the shadow, %s for real", st, a, b)
			}
		}
		if a, b := fmt.Sprint(shadow.Left()), fmt.Sprint(real.Left()); a != b {
			rt.Fatalf("leaves %s over the shadow, %s for real", a, b)
		}
	})
}
