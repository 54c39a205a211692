package additive

import (
	"errors"
	"strings"
	"testing"
)

// A pair of contents of /data/f, and what is said about it: a verb, or the loss
// without the path.
var contentCases = []struct {
	name, old, new, want string
}{
	// JSON
	{"element added", `[1,2]`, `[1,2,3]`, "append"},
	{"element put in front", `[1,2]`, `[0,1,2]`, "insert"},
	{"element put between", `[1,2]`, `[1,0,2]`, "insert"},
	{"element removed", `[1,2,3]`, `[1,3]`, "#/1: element was removed, changed or moved"},
	{"last element removed", `[1,2]`, `[1]`, "#/1: element was removed, changed or moved"},
	{"all removed", `[1,2]`, `[]`, "#/0: element was removed, changed or moved"},
	{"array reordered", `[1,2]`, `[2,1]`, "#/1: element was removed, changed or moved"},
	{"equal elements counted", `[1,1]`, `[1]`, "#/1: element was removed, changed or moved"},
	{"empty array", `[]`, `[1]`, "append"},
	{"empty object", `{}`, `{"a":1}`, "append"},
	{"empty array becomes object", `[]`, `{}`, ": value was changed from an array to an object"},
	{"key added", `{"a":1}`, `{"a":1,"b":2}`, "append"},
	{"key put in front", `{"a":1}`, `{"b":2,"a":1}`, "insert"},
	{"keys in another order", `{"a":1,"b":2,"c":3}`, `{"c":3,"b":2,"a":1}`, "insert"},
	{"keys in another order, one changed", `{"a":1,"b":2,"c":3}`, `{"c":3,"b":0,"a":1}`, "#/b: value was changed"},
	{"key removed", `{"a":1,"b":2}`, `{"a":1}`, "#/b: key was removed"},
	{"key renamed", `{"a":1}`, `{"A":1}`, "#/a: key was removed"},
	{"value changed", `{"a":"x"}`, `{"a":"y"}`, "#/a: value was changed"},
	{"type swapped", `{"a":1}`, `{"a":"1"}`, "#/a: value was changed from a number to a string"},
	{"array for object", `{"a":{}}`, `{"a":[]}`, "#/a: value was changed from an object to an array"},
	{"scalar for array", `{"a":[]}`, `{"a":null}`, "#/a: value was changed from an array to null"},
	{"true for false", `[{"a":true}]`, `[{"a":false}]`, "#/0: element was removed, changed or moved"},
	{"list grows in an object", `{"n":[{"i":1}],"v":1}`, `{"n":[{"i":1},{"i":2}],"v":1}`, "append"},
	{"entry gains a field", `[{"i":1},{"i":2}]`, `[{"i":1,"x":0},{"i":2}]`, "insert"},
	{"list in an entry grows", `[[1],[2]]`, `[[1,1],[2]]`, "insert"},
	{
		"entry loses a field", `[{"i":1,"tags":["x"]},{"i":2}]`, `[{"i":1},{"i":2},{"i":3}]`,
		"#/0/tags: key was removed",
	},
	{
		"entry loses its first field", `{"notes":[{"at":7,"i":1},{"at":8,"i":2}]}`, `{"notes":[{"at":7,"i":1},{"i":2},{"i":3}]}`,
		"#/notes/1/at: key was removed",
	},
	{
		"field of an entry changes", `[{"i":1,"t":"a"},{"i":2,"t":"b"}]`, `[{"i":0,"t":""},{"i":1,"t":"a"},{"i":2,"t":"c"}]`,
		"#/1/t: value was changed",
	},
	{"second candidate is like the first", `[{"a":1,"b":2}]`, `[{"a":1,"b":3},{"a":1,"b":2}]`, "insert"},
	{"second candidate is like the first in front", `[{"a":1,"b":2}]`, `[{"a":1,"c":2},{"a":1,"b":2}]`, "insert"},
	{"second candidate is like the first and no better", `[{"a":1,"b":2}]`, `[{"a":1,"b":3},{"a":0,"b":2}]`, "#/0/b: value was changed"},
	{"nested sequence", `[[1,2],[3]]`, `[[2],[1,2],[1,0,2],[0],[3,3]]`, "insert"},
	{"written otherwise", `{"a":[1,2]}`, "{\n  \"a\" : [ 1, 2 ]\n}\n", "insert"},
	{"pretty and grown", "{\n \"a\": [\n  1\n ]\n}\n", "{\n \"a\": [\n  1,\n  2\n ]\n}\n", "append"},
	{"zip behind JSON", `{"a":1}`, `{"a":1}` + "PK\x03\x04\x00\x00", ": file was JSON and no longer is"},
	{"zip behind JSON lines", "{\"a\":1}\n", "{\"a\":1}\nPK\x05\x06", ": file was JSON and no longer is"},
	{"garbage behind JSON", `[1]`, `[1] x`, ": file was JSON and no longer is"},
	{"second document on the line", `{"a":1}`, `{"a":1} {"b":2}`, ": file was JSON and no longer is"},
	{"NUL behind JSON", `[1]`, "[1]\x00", ": file was JSON and no longer is"},
	{"duplicate key comes", `{"a":1}`, `{"a":1,"a":2}`, ": file was JSON and no longer is"},
	{"duplicate key in escapes comes", `{"a":1}`, `{"a":1,"\u0061":2}`, ": file was JSON and no longer is"},
	{"duplicate key was there: text", `{"a":1,"a":2}`, `{"a":1,"a":2,"b":3}`, ": line 1 was removed, changed or moved"},
	{"duplicate key was there: text grows", `{"a":1,"a":2}`, "{\"a\":1,\"a\":2}\nx", "append"},
	{"comments come", `{"a":1}`, "{\"a\":1} // b", ": file was JSON and no longer is"},
	{"trailing comma comes", `[1]`, "[1,]", ": file was JSON and no longer is"},
	{"byte order mark kept", "\uFEFF[1]", "\uFEFF[1,2]", "append"},
	{"byte order mark goes", "\uFEFF[1]", "[1,2]", "append"},
	{"byte order mark comes", "[1]", "\uFEFF[1]", "insert"},
	{"half a mark comes", "[1]", "\xef\xbb[1]", ": file was JSON and no longer is"},
	{"CRLF in JSON", "[\n1\n]", "[\r\n1,\r\n2]", "append"},
	{"scalar is text", `12`, `1250`, ": line 1 was removed, changed or moved"},
	{"scalar is text and grows", `12`, "12\nfoo", "append"},
	{"string is text", `"a"`, "\"a\"\n\"b\"", "append"},
	{"null is text", "null", "[]", ": line 1 was removed, changed or moved"},
	{"invalid UTF-8 in a string comes", `["a"]`, "[\"a\",\"\xff\"]", ": file was JSON and no longer is"},
	{"surrogate in UTF-8 comes", `["a"]`, "[\"a\",\"\xed\xa0\x80\"]", ": file was JSON and no longer is"},
	{"control character in a string comes", `["a"]`, "[\"a\",\"\n\"]", ": file was JSON and no longer is"},
	{"control character in a long string comes", `["a"]`, "[\"a\",\"aaaaaaaaaaa\taaaaaaaaaaaa\"]", ": file was JSON and no longer is"},

	// Numbers
	{"same number", `[1.0,1,1e0,10e-1,0.1e1,100E-2]`, `[1,1.0,1.00,1e0,1,1]`, "insert"},
	{"2^53+1", `[9007199254740993]`, `[9007199254740992]`, "#/0: element was removed, changed or moved"},
	{"2^53+1 stays", `{"a":9007199254740993}`, `{"a":9007199254740993.0}`, "insert"},
	{"last digit of many", `{"a":0.10000000000000000000000000000000001}`, `{"a":0.1}`, "#/a: value was changed"},
	{"zeros", `[0,-0,0.0,0e9,-0e-9]`, `[-0,0e99999999999999999999,0,0,0.000]`, "insert"},
	{"sign", `{"a":1}`, `{"a":-1}`, "#/a: value was changed"},
	{"power", `{"a":1e5}`, `{"a":100000}`, "insert"},
	{"small power", `{"a":0.00012}`, `{"a":1.2e-4}`, "insert"},
	{"another power", `{"a":1e5}`, `{"a":1e6}`, "#/a: value was changed"},
	{"huge power", `{"a":1e999999999999999999999}`, `{"a":10e999999999999999999998}`, "insert"},
	{"another huge power", `{"a":1e999999999999999999999}`, `{"a":1e999999999999999999998}`, "#/a: value was changed"},
	{"small huge power", `{"a":1e-999999999999999999999}`, `{"a":0.1e-999999999999999999998}`, "insert"},
	{"leading zero comes", `[1]`, `[1,01]`, ": file was JSON and no longer is"},
	{"plus comes", `[1]`, `[1,+1]`, ": file was JSON and no longer is"},
	{"bare point comes", `[1]`, `[1,1.]`, ": file was JSON and no longer is"},
	{"NaN comes", `[1]`, `[1,NaN]`, ": file was JSON and no longer is"},

	// Strings
	{"escapes", `["aä€😀/\n"]`, `["\u0061\u00e4\u20AC\ud83d\uDE00\/\u000A"]`, "insert"},
	{"other code point", `{"a":"\u00e9"}`, `{"a":"e\u0301"}`, "#/a: value was changed"},
	{"escaped key", `{"a\/b":1}`, `{"\u0061/b":1,"c":2}`, "append"},
	{"lone surrogate stays", `["\ud800"]`, `["\uD800",1]`, "append"},
	{"lone surrogate replaced", `{"a":"\ud800"}`, `{"a":"\ufffd"}`, "#/a: value was changed"},
	{"another lone surrogate", `{"a":"\ud800"}`, `{"a":"\udbff"}`, "#/a: value was changed"},
	{"lone surrogates as keys", `{"\ud800":1,"\ud801":2,"\ufffd":3}`, `{"\ufffd":3,"\ud801":2,"\ud800":1}`, "insert"},
	{"pair split", `{"a":"\ud83d\ude00"}`, `{"a":"\ude00\ud83d"}`, "#/a: value was changed"},
	{"low before high", `{"a":"\ude00\ud83d"}`, `{"a":"\ude00\ud83d","b":1}`, "append"},
	{"two low surrogates", `{"a":"\ude00\ude00"}`, `{"a":"\ude00\ude01"}`, "#/a: value was changed"},
	{"letter and a surrogate", `{"a":"\u0061\udc00"}`, `{"a":"\u0062\udc00"}`, "#/a: value was changed"},
	{"string grows", `{"a":"x"}`, `{"a":"xy"}`, "#/a: value was changed"},
	{"NUL in a string", `{"a":"\u0000"}`, `{"a":"\u0000","b":"\u0000"}`, "append"},
	{"bad escape comes", `["a"]`, `["a","\x41"]`, ": file was JSON and no longer is"},
	{"pointer escapes", `{"a/b":{"c~d":1}}`, `{"a/b":{"c~d":2}}`, "#/a~1b/c~0d: value was changed"},
	{"pointer without control characters", `{"a\n\u001b\u2028":1}`, `{}`, `#/a\n\x1b\u2028: key was removed`},

	// JSON Lines
	{"record added", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "append"},
	{"record added without a break at the end", "{\"a\":1}\n{\"a\":2}", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}", "append"},
	{"record put between", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":0}\n{\"a\":2}\n", "insert"},
	{"record gains a key", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2,\"b\":1}\n", "insert"},
	{"records reordered", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":2}\n{\"a\":1}\n", "#/1: element was removed, changed or moved"},
	{
		"record loses a key", "{\"n\":\"A\",\"t\":1}\n{\"n\":\"B\"}\n", "{\"n\":\"A\"}\n{\"n\":\"B\"}\n{\"n\":\"C\"}\n",
		"#/0/t: key was removed",
	},
	{"record lost", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}", "{\"a\":1}\n{\"c\":3}\n", "#/1/b: key was removed"},
	{"records with CRLF", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\r\n{\"a\":2}\r\n{\"a\":3}\r\n", "append"},
	{"blank lines", "{\"a\":1}\n\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\n\n", "insert"},
	{"line that is no object", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\n[3]\n", ": file was JSON Lines and no longer is: every line has to be a JSON object"},
	{"line that is broken", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\n{\"a\"\n", ": file was JSON Lines and no longer is: every line has to be a JSON object"},
	{"zip behind records", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\nPK\x03\x04", ": file was JSON Lines and no longer is: every line has to be a JSON object"},
	{"records in one array", "{\"a\":1}\n{\"a\":2}\n", "[{\"a\":1},{\"a\":2}]", ": file was JSON Lines and no longer is: every line has to be a JSON object"},
	{"pretty record", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\n\"a\":2}\n", ": file was JSON Lines and no longer is: every line has to be a JSON object"},
	{"one record by either rule: second one", "{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n", "append"},
	{"one record by either rule: in front", "{\"a\":1}\n", "{\"b\":2}\n{\"a\":1}\n", "insert"},
	{"one record by either rule: a key", "{\"a\":1}\n", "{\"a\":1,\"b\":2}\n", "append"},
	{"one record by either rule: pretty", "{\"a\":1}\n", "{\n\"a\":1}\n", "insert"},
	{"one record by either rule: lost", "{\"a\":1}\n", "{\"b\":1}\n", "#/a: key was removed"},
	{"object in an array", "{\"a\":1}\n", "[{\"a\":1}]\n", ": value was changed from an object to an array"},
	{"line added must be whole", "{\"a\":1}\n", "{\"a\":1}\n{\"b\":", ": file was JSON and no longer is"},
	{"line added must be an object", "{\"a\":1}\n", "{\"a\":1}\n2\n", ": file was JSON and no longer is"},
	{"pretty object is not JSON Lines", "{\n\"a\":1}\n", "{\n\"a\":1}\n{\"b\":2}\n", ": file was JSON and no longer is"},
	{"array is not JSON Lines", "[1]\n", "[1]\n{\"b\":2}\n", ": file was JSON and no longer is"},
	{"arrays on lines are text", "[1]\n[2]\n", "[1]\n[1,2]\n[2]\n", "insert"},
	{"arrays on lines are text: changed", "[1]\n[2]\n", "[1]\n[2,3]\n", ": line 2 was removed, changed or moved"},
	{"record with a duplicate key: text", "{\"a\":1,\"a\":1}\n{\"a\":2}\n", "{\"a\":1,\"a\":1}\n{\"a\":2,\"b\":1}\n", ": line 2 was removed, changed or moved"},

	// Text
	{"line added", "a\nb\n", "a\nb\nc\n", "append"},
	{"line put in front", "a\nb\n", "c\na\nb\n", "insert"},
	{"line put between", "a\nb\n", "a\nc\nb\n", "insert"},
	{"line removed", "a\nb\nc\n", "a\nc\n", ": line 2 was removed, changed or moved"},
	{"line changed", "a\nb\nc\n", "a\nB\nc\n", ": line 2 was removed, changed or moved"},
	{"lines reordered", "a\nb\n", "b\na\n", ": line 2 was removed, changed or moved"},
	{"line repeated", "a\na\n", "a\n", ": line 2 was removed, changed or moved"},
	{"number grows at the end", "a,1\nb,12", "a,1\nb,1250", ": line 2 was removed, changed or moved"},
	{"line added behind no break", "a\nb", "a\nb\nc", "append"},
	{"break added at the end", "a\nb", "a\nb\n", "append"},
	{"break removed at the end", "a\nb\n", "a\nb", "insert"},
	{"CRLF comes", "a\nb\n", "a\r\nb\r\nc\r\n", "append"},
	{"CRLF goes", "a\r\nb\r\n", "a\nb\n", "insert"},
	{"CR is no break", "a\rb\n", "a\nb\n", ": line 1 was removed, changed or moved"},
	{"CR belongs to the line", "a\r\r\nb\n", "a\r\nb\n", ": line 1 was removed, changed or moved"},
	{"CR at the end belongs to the line", "a\r", "a\r\nb", ": line 1 was removed, changed or moved"},
	{"CR in front of a break comes", "a\n", "a\r\r\n", ": line 1 was removed, changed or moved"},
	{"blank line removed", "a\n\nb\n", "a\nb\n", ": line 2 was removed, changed or moved"},
	{"blank line added", "a\nb\n", "a\n\nb\n", "insert"},
	{"white space only", " \n\n", " \n\nx\n", "append"},
	{"white space only, lost", " \n\n", "{}", ": line 1 was removed, changed or moved"},
	{"space at the end of a line", "a \nb\n", "a\nb\n", ": line 1 was removed, changed or moved"},
	{"zip behind text", "a\nb\n", "a\nb\nPK\x03\x04\x00\x00\xff", ": file was text and no longer is: text is UTF-8 without NUL"},
	{"NUL behind text", "a\n", "a\n\x00", ": file was text and no longer is: text is UTF-8 without NUL"},
	{"half a code point behind text", "a\n", "a\n\xe2\x82", ": file was text and no longer is: text is UTF-8 without NUL"},
	{"byte order mark stays", "\uFEFFa,b\n", "\uFEFFa,b\n1,2\n", "append"},
	{"line behind the mark", "\uFEFFa\n", "\uFEFFb\na\n", "insert"},
	{"byte order mark of text goes", "\uFEFFa,b\n", "a,b\n", ": byte order mark came or went"},
	{"byte order mark of text comes", "a,b\n", "\uFEFFa,b\n", ": byte order mark came or went"},
	{"script grows", "#!/bin/sh\nrm x\n", "#!/bin/sh\nrm x\necho\n", "append"},
	{"script grows behind no break", "#!/bin/sh\nrm x", "#!/bin/sh\nrm x\necho\n", "append"},
	{"script gains a line", "#!/bin/sh\nrm x\n", "#!/bin/sh\nexit\nrm x\n", ": file can be run as a program: whole lines may be added at its end, and nothing else may change"},
	{"script's last line grows", "#!/bin/sh\nrm x", "#!/bin/sh\nrm xy\n", ": file can be run as a program: whole lines may be added at its end, and nothing else may change"},
	{"script gets CRLF", "#!/bin/sh\nrm x\n", "#!/bin/sh\r\nrm x\r\n", ": file can be run as a program: whole lines may be added at its end, and nothing else may change"},

	// The rest
	{"binary grows", "\x00a", "\x00ab", ": file in a format without records was changed"},
	{"UTF-16 grows", "a\x00b\x00", "a\x00b\x00c\x00", ": file in a format without records was changed"},
	{"Latin-1 grows", "\xe4\n", "\xe4\nb\n", ": file in a format without records was changed"},
	{"empty file", "", "\x00anything", "append"},
	{"emptied", "a\n", "", ": line 1 was removed, changed or moved"},
	{"JSON emptied", "{}", "", ": file was JSON and no longer is"},
	{"unfinished JSON is text", "[1,2", "[1,2,3]", ": line 1 was removed, changed or moved"},
}

func TestContents(t *testing.T) {
	for _, c := range contentCases {
		t.Run(c.name, func(t *testing.T) {
			got := strings.TrimPrefix(verdictOf(t, "f", c.old, c.new, Rules{}), "/data/f")
			if got != c.want {
				t.Errorf("%q -> %q\n got %s\nwant %s", c.old, c.new, got, c.want)
			}
		})
	}
}

func TestParsePointer(t *testing.T) {
	for s, want := range map[string][]string{
		"/data/n.json#/next_id":   {"next_id"},
		"/d/f#/*/a~1b/~01":        {"*", "a/b", "~1"},
		"/d/f#/":                  {""},
		"/d/f#/a#b":               {"a#b"},
		"d/f#/a":                  nil,
		"/d/f#a":                  nil,
		"/d/f#":                   nil,
		"/d/f":                    nil,
		"/d/f#/a~2":               nil,
		"/d/f#/a~":                nil,
		"/data/with space.json#/": {""},
	} {
		p, err := ParsePointer(s)
		switch {
		case want == nil && !errors.Is(err, ErrPointer):
			t.Errorf("%q: got %q, %v", s, p.Segments, err)
		case want != nil && (err != nil || strings.Join(p.Segments, "\n") != strings.Join(want, "\n")):
			t.Errorf("%q: got %q, %v", s, p.Segments, err)
		case want != nil && (p.String() != s || (Pointer{File: p.File, Segments: p.Segments}).String() != s):
			t.Errorf("%q: written as %q", s, p)
		}
	}
}
