//go:build !wasip1

package kv

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	defer Reset()
	Reset()
	value := []byte("old")
	if err := errors.Join(Put("b", value), Put("a", nil), Append("b", []byte("er")), Append("c", nil), Delete("none")); err != nil {
		t.Fatal(err)
	}
	copy(value, "new")
	if v, ok, err := Get("b"); string(v) != "older" || !ok || err != nil {
		t.Errorf("got %q, %v, %v", v, ok, err)
	}
	if _, ok, err := Get("c"); ok || err != nil {
		t.Errorf("appending nothing made a key, %v", err)
	}
	list, err := Scan("a", "c", 0)
	if err != nil || len(list) != 2 || list[0].Key != "a" || string(list[1].Value) != "older" {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err := Scan("a", "", 1); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err := Scan("a", "b", 9); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	Reset()
	if _, ok, _ := Get("b"); ok {
		t.Error("a reset forgets nothing")
	}
}

func TestIncrement(t *testing.T) {
	defer Reset()
	Reset()
	for _, c := range []struct {
		start string
		by    int64
		sum   int64
		err   error
	}{
		{"", 3, 3, nil},
		{"-1", math.MaxInt64, math.MaxInt64 - 1, nil},
		{"1", math.MaxInt64, 0, ErrOverflow},
		{"-1", math.MinInt64, 0, ErrOverflow},
		{"007", 1, 0, ErrNotNumber},
		{"+1", 0, 0, ErrNotNumber},
		{"x", 1, 0, ErrNotNumber},
	} {
		Reset()
		if c.start != "" {
			if err := Put("n", []byte(c.start)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := Increment("n", c.by); n != c.sum || !errors.Is(err, c.err) {
			t.Errorf("%q + %d = %d, %v", c.start, c.by, n, err)
		}
	}
}

func TestBounds(t *testing.T) {
	defer Reset()
	Reset()
	long, big := strings.Repeat("k", MaxKey+1), make([]byte, MaxValue+1)
	_, _, getErr := Get("")
	_, incErr := Increment(long, 1)
	for _, c := range []struct{ got, want error }{
		{getErr, ErrKey},
		{incErr, ErrKey},
		{Put(long, nil), ErrKey},
		{Delete(long), ErrKey},
		{Put(long[1:], big[1:]), nil},
		{Append(long[1:], []byte("x")), ErrTooLarge},
		{Put("k", big), ErrTooLarge},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

func TestErrnoNamesItsNumber(t *testing.T) {
	if text := Errno(28).Error(); !strings.Contains(text, "28") {
		t.Errorf("%q", text)
	}
}
