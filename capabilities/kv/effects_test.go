package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// call is a key and what is done to it, in order.
type call func(o *Overlay)

func puts(key, value string) call {
	return func(o *Overlay) { check(o.Put(context.Background(), key, []byte(value))) }
}

func deletes(key string) call { return func(o *Overlay) { check(o.Delete(context.Background(), key)) } }

func appends(key, value string) call {
	return func(o *Overlay) { check(o.Append(context.Background(), key, []byte(value))) }
}

func increments(key string, by int64) call {
	return func(o *Overlay) { _, err := o.Increment(context.Background(), key, by); check(err) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Each effect, and whether it takes something away (the law, section 4, KV).
func TestLeft(t *testing.T) {
	for name, c := range map[string]struct {
		calls []call
		want  string
		lost  bool
	}{
		"nothing":                     {nil, "", false},
		"new":                         {[]call{puts("new", "abc")}, "create new 3", false},
		"new and changed":             {[]call{puts("new", "abc"), deletes("new"), appends("new", "x"), puts("new", "yy")}, "create new 2", false},
		"new and gone":                {[]call{puts("new", "abc"), deletes("new")}, "", false},
		"new by append":               {[]call{appends("new", "x")}, "create new 1", false},
		"new by increment":            {[]call{increments("new", 5)}, "create new 1", false},
		"new by nothing":              {[]call{appends("new", ""), increments("new", 0)}, "", false},
		"same":                        {[]call{puts("text", "old")}, "", false},
		"back":                        {[]call{puts("text", "x"), puts("text", "old")}, "", false},
		"gone and back":               {[]call{deletes("text"), puts("text", "old")}, "", false},
		"other":                       {[]call{puts("text", "oLd")}, "overwrite text 3", true},
		"longer":                      {[]call{puts("text", "older")}, "overwrite text 5", true},
		"gone":                        {[]call{deletes("text")}, "delete text 0", true},
		"gone that was not":           {[]call{deletes("none")}, "", false},
		"appended":                    {[]call{appends("text", "er"), appends("text", "s")}, "append text 3 append", false},
		"appended, after it was back": {[]call{puts("text", "x"), puts("text", "old"), appends("text", "er")}, "append text 2 append", false},
		"sign made a number":          {[]call{appends("sign", "5"), increments("sign", 10)}, "overwrite sign 1", true},
		"sign appended to":            {[]call{appends("sign", "5")}, "append sign 1 append", false},
		"sign, and back":              {[]call{appends("sign", "5"), increments("sign", 10), puts("sign", "-")}, "", false},
		"appended to another":         {[]call{puts("text", "x"), appends("text", "er")}, "overwrite text 3", true},
		"appended to nothing left":    {[]call{deletes("text"), appends("text", "old"), appends("text", "er")}, "append text 2 append", false},
		"appended to something else":  {[]call{deletes("text"), appends("text", "new")}, "overwrite text 3", true},
		"another over appended":       {[]call{appends("text", "er"), puts("text", "olderly")}, "overwrite text 7", true},
		"incremented":                 {[]call{increments("n", 5), increments("n", -2)}, "append n 2 increment by 3", false},
		"incremented back":            {[]call{increments("n", 5), increments("n", -5)}, "", false},
		"decremented":                 {[]call{increments("n", -8)}, "append n 2 increment by -8", false},
		"both":                        {[]call{increments("n", 1), appends("n", "0")}, "append n 2 append, increment", false},
		"the widest":                  {[]call{increments("min", math.MaxInt64), increments("min", math.MaxInt64), increments("min", 1)}, fmt.Sprintf("append min 19 increment by %s", "18446744073709551615"), false},
		"several":                     {[]call{puts("b", "1"), puts("a", "1")}, "create a 1; create b 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, fill(t, map[string]string{"text": "old", "n": "7", "sign": "-", "min": "-9223372036854775808"}), roomy())
			for _, f := range c.calls {
				f(o)
			}
			var got []string
			for _, e := range o.Left() {
				if e.Kind != capabilities.KindKey {
					t.Errorf("kind %s", e.Kind)
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", e.Verb, e.Object, e.Bytes, e.Detail)))
			}
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			if lost := len(o.Lost()) > 0; lost != c.lost {
				t.Errorf("lost: %v", o.Lost())
			}
		})
	}
}

func TestEffectsReads(t *testing.T) {
	o := begin(t, fill(t, map[string]string{"a": "12", "b": "345"}), roomy())
	for _, k := range []string{"b", "a", "none", "b"} {
		_, _, err := o.Get(t.Context(), k)
		must(t, err)
	}
	_, err := o.Scan(t.Context(), "a", "b\x00", 9)
	must(t, err)
	must(t, o.Put(t.Context(), "c", []byte("1")))
	b, err := json.Marshal(o.Effects())
	must(t, err)
	want := `[{"verb":"read","kind":"key","object":"a","bytes":2},{"verb":"read","kind":"key","object":"b","bytes":3},` +
		`{"verb":"read","kind":"key","object":"none","bytes":0},{"verb":"read","kind":"key","object":"a","bytes":5,"detail":"scan to \"b\\x00\""},` +
		`{"verb":"create","kind":"key","object":"c","bytes":1}]`
	if got := string(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEffectsAreBounded(t *testing.T) {
	o := begin(t, fill(t, nil), roomy())
	for i := range 1500 {
		_, _, err := o.Get(t.Context(), fmt.Sprint("r", i))
		must(t, err)
		must(t, o.Put(t.Context(), fmt.Sprint("w", i), nil))
	}
	list := o.Effects()
	if len(list) != 1000 || list[499].Detail != "and 1000 more" || list[999].Detail != "and 1000 more" || len(o.Left()) != 1500 {
		t.Errorf("%d: %v, %v", len(list), list[499], list[999])
	}
}
