package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// What a call rests on is exactly what it looked at.
func TestConflicts(t *testing.T) {
	get := func(k string) func(*Overlay) error {
		return func(o *Overlay) error { _, _, err := o.Get(context.Background(), k); return err }
	}
	scan := func(from, to string, limit int) func(*Overlay) error {
		return func(o *Overlay) error { _, err := o.Scan(context.Background(), from, to, limit); return err }
	}
	for name, c := range map[string]struct {
		call     func(*Overlay) error
		other    map[string]string
		conflict bool
	}{
		"what was read changed":      {get("b"), map[string]string{"b": "new"}, true},
		"what was read went":         {get("b"), map[string]string{"b": ""}, true},
		"the same value again":       {get("b"), map[string]string{"b": "2"}, true},
		"what was absent came":       {get("x"), map[string]string{"x": "1"}, true},
		"something else":             {get("b"), map[string]string{"a": "new", "x": "1"}, false},
		"in the range":               {scan("a", "c", 9), map[string]string{"b": "new"}, true},
		"new in the range":           {scan("a", "c", 9), map[string]string{"aa": "new"}, true},
		"gone from the range":        {scan("a", "c", 9), map[string]string{"a": ""}, true},
		"at the end":                 {scan("a", "c", 9), map[string]string{"c": "new"}, false},
		"an empty range":             {scan("x", "z", 9), map[string]string{"y": "new"}, true},
		"behind the last of limit":   {scan("a", "", 2), map[string]string{"ba": "new", "c": "new"}, false},
		"before the last of limit":   {scan("a", "", 2), map[string]string{"aa": "new"}, true},
		"the last of limit":          {scan("a", "", 2), map[string]string{"b": "new"}, true},
		"a limit that was not met":   {scan("a", "", 9), map[string]string{"z": "new"}, true},
		"nothing was asked for":      {scan("a", "", 0), map[string]string{"a": "new"}, false},
		"no range":                   {scan("c", "a", 9), map[string]string{"b": "new"}, false},
		"written without reading":    {func(o *Overlay) error { return o.Put(context.Background(), "b", nil) }, map[string]string{"b": "new"}, true},
		"removed by the call itself": {func(o *Overlay) error { return errors.Join(o.Delete(context.Background(), "a"), scan("a", "", 1)(o)) }, map[string]string{"b": "new"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fill(t, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})
			o := begin(t, s, roomy())
			must(t, c.call(o))
			save(t, s, c.other)
			if err := commit(t, s, o); errors.Is(err, store.ErrConflict) != c.conflict {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Long ranges are read piece by piece, whatever the size of values.
func TestScanPages(t *testing.T) {
	values := map[string]string{}
	for i := range 3000 {
		values[fmt.Sprintf("k%05d", i)] = strings.Repeat("x", 1+i%7*10)
	}
	s := fill(t, values)
	o := begin(t, s, roomy())
	must(t, o.Put(t.Context(), "k00500", []byte("own")))
	must(t, o.Delete(t.Context(), "k00501"))
	must(t, o.Put(t.Context(), "k00500a", []byte("own")))
	for _, limit := range []int{1, 15, 16, 17, 1000, 2999, 3000, 3001} {
		list, err := o.Scan(t.Context(), "", "", limit)
		must(t, err)
		if len(list) != min(limit, 3000) {
			t.Errorf("%d of %d", len(list), limit)
		}
	}
	must(t, commit(t, s, o))
}

func TestBounds(t *testing.T) {
	long, big := strings.Repeat("k", MaxKey+1), make([]byte, MaxValue+1)
	s := fill(t, map[string]string{"big": string(big[1:])})
	o := begin(t, s, roomy())
	_, _, getErr := o.Get(t.Context(), long)
	_, scanErr := o.Scan(t.Context(), long+"x", "", 1)
	for _, c := range []struct{ got, want error }{
		{o.Put(t.Context(), "", nil), capabilities.EINVAL},
		{o.Put(t.Context(), long, nil), capabilities.ENAMETOOLONG},
		{o.Put(t.Context(), long[1:], big[1:]), nil},
		{o.Put(t.Context(), "k", big), capabilities.EFBIG},
		{o.Append(t.Context(), "big", []byte("x")), capabilities.EFBIG},
		{o.Append(t.Context(), "new", big), capabilities.EFBIG},
		{getErr, capabilities.ENAMETOOLONG},
		{scanErr, capabilities.ENAMETOOLONG},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget *Budget
		call   func(*Overlay) error
		want   string
	}{
		"nothing may be written": {&Budget{}, func(o *Overlay) error { return o.Put(context.Background(), "k", nil) }, limitWrites},
		"bytes":                  {&Budget{Bytes: 9, Keys: 9}, func(o *Overlay) error { return o.Put(context.Background(), "k", make([]byte, 9)) }, limitWrites},
		"bytes appended":         {&Budget{Bytes: 9, Keys: 9}, fifth(func(o *Overlay) error { return o.Append(context.Background(), "k", []byte("ab")) }), limitWrites},
		"bytes given back":       {&Budget{Bytes: 9, Keys: 9}, fifth(func(o *Overlay) error { return o.Put(context.Background(), "k", []byte("ab")) }), ""},
		"keys":                   {&Budget{Bytes: 99, Keys: 4}, fifth(func(o *Overlay) error { return o.Put(context.Background(), fmt.Sprint("k", len(o.order)), nil) }), limitKeys},
		"looks": {&Budget{Seen: 2 * pointCost}, fifth(func(o *Overlay) error {
			_, _, err := o.Get(context.Background(), fmt.Sprint("k", len(o.points)))
			return err
		}), limitLooks},
		"ranges": {&Budget{Seen: 2 * rangeCost}, fifth(func(o *Overlay) error {
			_, err := o.Scan(context.Background(), fmt.Sprint("k", len(o.ranges)), "", 1)
			return err
		}), limitLooks},
		"the same again": {&Budget{Seen: 2 * rangeCost}, fifth(func(o *Overlay) error { _, err := o.Scan(context.Background(), "", "", 1); return err }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := roomy()
			o.Budget = c.budget
			err := c.call(begin(t, fill(t, nil), o))
			l, ok := errors.AsType[*LimitError](err)
			if ok != (c.want != "") || ok && l.Resource != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// fifth returns the error of the first of five times that has one.
func fifth(f func(*Overlay) error) func(*Overlay) error {
	return func(o *Overlay) error {
		for range 5 {
			if err := f(o); err != nil {
				return err
			}
		}
		return nil
	}
}

// A long range ends with its budget, not with its last entry.
func TestBudgetOfLongRange(t *testing.T) {
	values := map[string]string{}
	for i := range 3000 {
		values[fmt.Sprint("k", i)] = "v"
	}
	o := roomy()
	o.Budget.Seen = rangeCost + 1500*entryCost
	seen := 0
	x := begin(t, fill(t, values), o)
	err := x.Each(t.Context(), "", "", func(Entry) bool { seen++; return true })
	if _, ok := errors.AsType[*LimitError](err); !ok || seen > 2*lastPage {
		t.Errorf("%v after %d", err, seen)
	}
}

func TestQuota(t *testing.T) {
	o := roomy()
	o.Quota = store.Usage{Keys: 3, Bytes: 20}
	asked := 0
	s := fill(t, map[string]string{"a": "12345", "b": "1"})
	o.Held = meter(func(ctx context.Context) (store.Usage, error) { asked++; return s.Usage(ctx, space) })
	x := begin(t, s, o)
	for i, c := range []struct {
		err  error
		full bool
	}{
		{x.Put(t.Context(), "a", []byte("5")), false}, // 4
		{x.Put(t.Context(), "c", make([]byte, 15)), false},
		{x.Put(t.Context(), "c", make([]byte, 16)), true},
		{x.Append(t.Context(), "b", []byte("23")), true},
		{x.Delete(t.Context(), "c"), false},
		{x.Append(t.Context(), "b", []byte("23")), false},
		{x.Put(t.Context(), "c", nil), false},
		{x.Put(t.Context(), "d", nil), true},
	} {
		if errors.Is(c.err, ErrFull) != c.full {
			t.Errorf("%d: %v", i, c.err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	o.Held = meter(func(context.Context) (store.Usage, error) { return store.Usage{}, errBroken })
	if err := begin(t, s, o).Put(t.Context(), "x", nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// A view with holes comes to no change.
func TestBrokenBase(t *testing.T) {
	for _, call := range []func(*Overlay) error{
		func(o *Overlay) error { _, _, err := o.Get(t.Context(), "a"); return err },
		func(o *Overlay) error { return o.Put(t.Context(), "a", nil) },
		func(o *Overlay) error { _, err := o.Scan(t.Context(), "a", "", 1); return err },
	} {
		o := NewOverlay(broken{}, roomy())
		if err := call(o); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		if c, err := o.Change(); !errors.Is(err, errBroken) || c != nil {
			t.Errorf("change: %v, %v", c, err)
		}
	}
}

// Nobody outside can change what the overlay holds.
func TestValuesAreCopies(t *testing.T) {
	o := begin(t, fill(t, map[string]string{"a": "old"}), roomy())
	mine := []byte("new")
	must(t, o.Put(t.Context(), "b", mine))
	copy(mine, "bad")
	for _, k := range []string{"a", "b"} {
		v, _, err := o.Get(t.Context(), k)
		must(t, err)
		copy(v, "bad")
	}
	list, err := o.Scan(t.Context(), "", "", 9)
	must(t, err)
	copy(list[1].Value, "bad")
	c, err := o.Change()
	must(t, err)
	copy(c.Writes[0].Value, "bad")
	must(t, o.Append(t.Context(), "a", []byte("er")))
	if a, b := o.writes["a"].value, o.writes["b"].value; !bytes.Equal(a, []byte("older")) || !bytes.Equal(b, []byte("new")) {
		t.Errorf("got %q, %q", a, b)
	}
}

// What the base has is not written to, where there is room behind it either.
func TestAppendLeavesBase(t *testing.T) {
	value := []byte("old and more")
	o := NewOverlay(one{value[:3]}, roomy())
	must(t, o.Append(t.Context(), "k", []byte("er")))
	if string(value) != "old and more" {
		t.Errorf("the base became %q", value)
	}
}

// one is a base that has one value at every key.
type one struct{ value []byte }

func (b one) Get(context.Context, string) ([]byte, store.Version, bool, error) {
	return b.value, 1, true, nil
}

func (b one) Scan(context.Context, string, string, int) ([]Entry, error) { return nil, nil }
