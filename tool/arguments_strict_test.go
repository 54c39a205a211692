package tool

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzReadStrict: what is read is JSON to encoding/json, and stays the same value in
// its canonical form, which is read as itself; what is not JSON is said to be none, and
// nothing else is.
func FuzzReadStrict(f *testing.F) {
	for _, in := range []string{
		``, ` `, `{}`, `[]`, `[1,]`, `[1 2]`, `[,]`, `[`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `{"a":1}}`, `{"a":1} x`,
		`"`, `"\`, `"\"`, `"\u12"`, `"\ud800"`, `"\ud83d\ude00"`, `"\x"`, "\"\n\"", "\"\x7f\"", `-`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `1E-7`, `+1`, `1e400`, `--1`,
		`tru`, `true`, `nul`, `nulll`, `false `, "\ufeff1", `{"a":1,"a":2`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, "\x00", "1\x00", "[1]\v",
	} {
		f.Add([]byte(in), true)
		f.Add([]byte(in), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, folded bool) {
		_, canonical, fault := readStrict(in, folded)
		valid := json.Valid(in) && utf8.Valid(in)
		if fault != nil {
			if not := len(fault.problem) > 3 && fault.problem[:4] == "not "; not == valid {
				t.Fatalf("%q, valid: %t: %+v", in, valid, *fault)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is read", in)
		}
		var a, b any
		for _, x := range []struct {
			raw  []byte
			into *any
		}{{in, &a}, {canonical, &b}} {
			d := json.NewDecoder(bytes.NewReader(x.raw))
			d.UseNumber()
			if err := d.Decode(x.into); err != nil {
				t.Fatalf("%q: %v", x.raw, err)
			}
		}
		first, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		second, err := json.Marshal(b)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%q becomes %q, %v", in, canonical, err)
		}
		if _, again, fault := readStrict(canonical, folded); fault != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("%q becomes %q, %v", canonical, again, fault)
		}
	})
}
