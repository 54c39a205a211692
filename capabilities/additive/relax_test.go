package additive

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

const counted = `{"next_id":2,"notes":[{"id":1,"text":"a","seen":0}]}`

var volatileCases = []struct {
	name, old, new string
	volatile       []string
	want           string
}{
	{"counter", counted, `{"next_id":3,"notes":[{"id":1,"text":"a","seen":0},{"id":2}]}`, []string{"/next_id"}, "overwrite"},
	{"not approved", counted, `{"next_id":3,"notes":[{"id":1,"text":"a","seen":0},{"id":2}]}`, nil, "/data/f#/next_id: value was changed"},
	{"another place", counted, `{"next_id":3,"notes":[{"id":1,"text":"a","seen":0}]}`, []string{"/notes/0/seen", "/next", "/next_id/0", "/*/next_id"}, "/data/f#/next_id: value was changed"},
	{"not needed", counted, `{"next_id":2,"notes":[{"id":1,"text":"a","seen":0},{"id":2}]}`, []string{"/next_id"}, "append"},
	{"type stays", counted, `{"next_id":"3","notes":[{"id":1,"text":"a","seen":0}]}`, []string{"/next_id"}, "/data/f#/next_id: value was changed from a number to a string"},
	{"no null", counted, `{"next_id":null,"notes":[{"id":1,"text":"a","seen":0}]}`, []string{"/next_id"}, "/data/f#/next_id: value was changed from a number to null"},
	{"stays there", counted, `{"notes":[{"id":1,"text":"a","seen":0}]}`, []string{"/next_id"}, "/data/f#/next_id: key was removed"},
	{"any element", counted, `{"next_id":2,"notes":[{"id":1,"text":"a","seen":7}]}`, []string{"/notes/*/seen"}, "overwrite"},
	{"any element, another field", counted, `{"next_id":2,"notes":[{"id":1,"text":"b","seen":7}]}`, []string{"/notes/*/seen"}, "/data/f#/notes/0/text: value was changed"},
	{"one element", counted, `{"next_id":2,"notes":[{"id":0},{"id":1,"text":"a","seen":7}]}`, []string{"/notes/0/seen"}, "overwrite"},
	{"not needed in the end", `[{"n":1,"id":1}]`, `[{"n":5,"id":0},{"n":1,"id":1}]`, []string{"/*/n"}, "insert"},
	{"everything: scalars", counted, `{"next_id":9,"notes":[{"id":8,"text":"z","seen":7}]}`, []string{"/*", "/*/*", "/*/*/*"}, "overwrite"},
	{"everything: key removed", counted, `{"next_id":9,"notes":[{"id":8,"text":"z"}]}`, []string{"/*", "/*/*", "/*/*/*"}, "/data/f#/notes/0/seen: key was removed"},
	{"everything: element removed", counted, `{"next_id":9,"notes":[]}`, []string{"/*", "/*/*", "/*/*/*"}, "/data/f#/notes/0: element was removed, changed or moved"},
	{"everything: list removed", counted, `{"next_id":9,"notes":{}}`, []string{"/*", "/*/*", "/*/*/*"}, "/data/f#/notes: value was changed from an array to an object"},
	{"everything: no JSON", counted, `nothing`, []string{"/*", "/*/*", "/*/*/*"}, "/data/f: file was JSON and no longer is"},
	{"structure is no scalar", counted, `{"next_id":2,"notes":[{"id":1}]}`, []string{"/notes", "/notes/*", "/notes/0"}, "/data/f#/notes/0/text: key was removed"},
	{"key named star", `{"*":1,"a":1}`, `{"*":2,"a":1}`, []string{"/*"}, "overwrite"},
	{"escaped key", `{"a/b":{"c~":1}}`, `{"a/b":{"c~":2}}`, []string{"/a~1b/c~0"}, "overwrite"},
	{"key in escapes", `{"\u0061":1}`, `{"a":2}`, []string{"/a"}, "overwrite"},
	{"index as a key", `{"0":1}`, `{"0":2}`, []string{"/0"}, "overwrite"},
	{"records", "{\"a\":1,\"n\":1}\n{\"a\":2,\"n\":1}\n", "{\"a\":1,\"n\":1}\n{\"a\":2,\"n\":5}\n", []string{"/1/n"}, "overwrite"},
	{"any record", "{\"a\":1,\"n\":1}\n{\"a\":2,\"n\":1}\n", "{\"a\":1,\"n\":4}\n{\"a\":2,\"n\":5}\n", []string{"/*/n"}, "overwrite"},
	{"one record, as a document", "{\"a\":1,\"n\":1}\n", "{\"a\":1,\"n\":2}\n", []string{"/n"}, "overwrite"},
	{"one record, as a record", "{\"a\":1,\"n\":1}\n", "{\"a\":1,\"n\":2}\n{\"a\":2}\n", []string{"/0/n"}, "overwrite"},
	{"text has no pointers", "12\n", "13\n", []string{"/0", "/*"}, "/data/f: line 1 was removed, changed or moved"},
}

func TestVolatile(t *testing.T) {
	for _, c := range volatileCases {
		t.Run(c.name, func(t *testing.T) {
			var list []string
			for _, p := range c.volatile {
				list = append(list, "/data/f#"+p)
			}
			if got := verdictOf(t, "f", c.old, c.new, Rules{Volatile: pointers(t, list...)}); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestVolatileIsOfOneFile(t *testing.T) {
	r := Rules{Volatile: pointers(t, "/data/g#/a", "/data/d/f#/a", "/f#/a")}
	if got := verdictOf(t, "f", `{"a":1}`, `{"a":2}`, r); got != "/data/f#/a: value was changed" {
		t.Error(got)
	}
}

var transitionCases = []struct {
	name, from, to, old, new, want string
}{
	{"declared", "pending", "accepted", `"pending"`, `"accepted"`, "overwrite"},
	{"back", "pending", "accepted", `"accepted"`, `"pending"`, "/data/f#/x/status: value was changed"},
	{"from another", "pending", "accepted", `"open"`, `"accepted"`, "/data/f#/x/status: value was changed"},
	{"to another", "pending", "accepted", `"pending"`, `"accepted!"`, "/data/f#/x/status: value was changed"},
	{"numbers", "1", "2", `1.0`, `20e-1`, "overwrite"},
	{"number that is none", "1", "x", `1`, `2`, "/data/f#/x/status: value was changed"},
	{"type stays", "1", "2", `1`, `"2"`, "/data/f#/x/status: value was changed from a number to a string"},
	{"literals", "false", "true", `false`, `true`, "overwrite"},
	{"from null", "null", "done", `null`, `"done"`, "overwrite"},
	{"to null", "done", "null", `"done"`, `null`, "overwrite"},
	{"to an object", "done", "null", `"done"`, `{}`, "/data/f#/x/status: value was changed from a string to an object"},
	{"escapes", "aä", "b", `"\u0061\u00e4"`, `"\u0062"`, "overwrite"},
	{"empty text", "", "b", `""`, `"b"`, "overwrite"},
}

func TestTransitions(t *testing.T) {
	for _, c := range transitionCases {
		t.Run(c.name, func(t *testing.T) {
			r := Rules{Transitions: []Transition{{At: pointers(t, "/data/f#/*/status")[0], From: c.from, To: c.to}}}
			got := verdictOf(t, "f", `{"x":{"status":`+c.old+`}}`, `{"x":{"status":`+c.new+`},"y":1}`, r)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestVolatileFiles(t *testing.T) {
	r := Rules{VolatileFiles: []string{"/data/cache/*", "*.tmp", "["}}
	old := files{"cache/a": text1("\x00"), "b.tmp": text1("x"), "c": text1("x\n")}
	report := judged(t, old, files{"cache/a": text1("y"), "b.tmp": text1("z"), "c": text1("x\ny\n")}, r)
	if report.Loss() != nil {
		t.Error(report.Loss())
	}
	for _, c := range report.Changed {
		if (c.Verb == capabilities.Overwrite) != (len(c.Relaxed) > 0) {
			t.Errorf("%+v", c)
		}
	}
	if got := summary(judged(t, old, files{"cache/a": text1("y"), "c": text1("x\n")}, r)); got != "/data/b.tmp: path was removed" {
		t.Error(got)
	}
	if got := summary(judged(t, files{"cache/d/a": text1("x")}, files{"cache/d/a": text1("y")}, r)); got != "/data/cache/d/a: line 1 was removed, changed or moved" {
		t.Error(got)
	}
}

func TestAppendOnly(t *testing.T) {
	r := Rules{AppendOnly: []string{"/data/*.log"}}
	for _, c := range []struct{ path, old, new, want string }{
		{"a.log", "\x00a", "\x00ab", "append"},
		{"a.log", "\x00a", "\x00b", "/data/a.log: append-only file was changed before its end"},
		{"a.log", "\x00a", "\x00", "/data/a.log: append-only file was changed before its end"},
		{"d/a.log", "\x00a", "\x00ab", "/data/d/a.log: file in a format without records was changed"},
		{"a.log", "a\nb", "a\nbc", "/data/a.log: line 2 was removed, changed or moved"}, // of text the lines count
	} {
		if got := verdictOf(t, c.path, c.old, c.new, r); got != c.want {
			t.Errorf("%q -> %q: got %s, want %s", c.old, c.new, got, c.want)
		}
	}
}

const was = "# Book\n\nOld text\n"

var historyCases = []struct {
	name string
	old  files
	new  files
	want string
}{
	{"kept", files{}, files{"history/1.md": text1(was)}, "overwrite"},
	{"kept deeper", files{}, files{"history/2026/1.md": text1(was)}, "overwrite"},
	{"kept among lines", files{}, files{"history/all": text1("-- 1\n" + was + "-- 2\n")}, "overwrite"},
	{"kept by moving it", files{}, files{"history/1.md": {content: was, from: "book.md"}}, "overwrite"},
	{"kept at the end of a file", files{"history/all": text1("-- 0\n")}, files{"history/all": text1("-- 0\n" + was)}, "append overwrite"},
	{"kept behind no break", files{"history/all": text1("-- 0")}, files{"history/all": text1("-- 0\n" + was)}, "append overwrite"},
	{"not kept", files{}, files{}, lostLine},
	{"kept before", files{"history/1.md": text1(was)}, files{"history/1.md": text1(was)}, lostLine},
	{"kept before, file grows", files{"history/all": text1(was)}, files{"history/all": text1(was + "x\n")}, lostLine},
	{"kept before, file grows more", files{"history/all": text1(was)}, files{"history/all": text1(was + "# Book\n\nAnother text\n")}, lostLine},
	{"kept in part", files{}, files{"history/1.md": text1(was[1:])}, lostLine},
	{"kept but for the end", files{}, files{"history/1.md": text1(was[:len(was)-1])}, lostLine},
	{"kept within a line", files{}, files{"history/1.md": text1("x" + was)}, lostLine},
	{"kept elsewhere", files{}, files{"attic/1.md": text1(was)}, lostLine},
	{"kept beside", files{}, files{"history.md": text1(was)}, lostLine},
	{"kept by overwriting", files{"history/1.md": text1("zzz\n")}, files{"history/1.md": text1("yyy\n" + was)}, lostLine},
}

const lostLine = "/data/book.md: line 3 was removed, changed or moved"

func TestHistory(t *testing.T) {
	r := Rules{History: []History{{Of: "/data/other", Under: "/data"}, {Of: "/data/book.md", Under: "/data/history"}}}
	for _, c := range historyCases {
		t.Run(c.name, func(t *testing.T) {
			c.old["book.md"] = text1(was)
			c.new["book.md"] = text1("# Book\n\nNew text\n")
			report := judged(t, c.old, c.new, r)
			verbs := map[string]string{}
			for _, ch := range report.Changed {
				verbs[ch.Object] = ch.Verb.String()
			}
			got := summary(report)
			if l := report.Loss(); l == nil {
				got = strings.TrimSpace(verbs["/data/history/all"] + " " + verbs["/data/book.md"])
			} else if slices.ContainsFunc(report.Losses, func(l Loss) bool { return l.Object == "/data/book.md" }) {
				got = lostLine
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestHistoryKeepsNames: what is kept elsewhere is no licence to remove.
func TestHistoryKeepsNames(t *testing.T) {
	r := Rules{History: []History{{Of: "/data/book.md", Under: "/data/history"}}}
	got := summary(judged(t, files{"book.md": text1(was)}, files{"history/1": {content: was, from: "book.md"}}, r))
	if got != "/data/book.md: path was renamed" {
		t.Error(got)
	}
}

// TestHistoryIsNotTheFileItself, whatever is in it.
func TestHistoryIsNotTheFileItself(t *testing.T) {
	r := Rules{History: []History{{Of: "/data/db", Under: "/data"}}}
	if l := judged(t, files{"db": text1("\x00a\n")}, files{"db": text1("\x00a\n\x00a\n")}, r).Loss(); l == nil || l.Why != whyBinary {
		t.Errorf("got %+v", l)
	}
}

// TestHistoryEndsWhereItEnds: a longer line is another one.
func TestHistoryEndsWhereItEnds(t *testing.T) {
	r := Rules{History: []History{{Of: "/data/f", Under: "/data/old"}}}
	for content, want := range map[string]string{"12": "overwrite", "12\n": "overwrite", "12\r\n": "overwrite", "1250": "lost", "0\n12": "overwrite", "012": "lost"} {
		got := "lost"
		if report := judged(t, files{"f": text1("12")}, files{"f": text1("13"), "old": text1(content)}, r); report.Loss() == nil {
			got = summary(report)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", content, got, want)
		}
	}
}

// TestHistoryInAnotherVolume, and of any format.
func TestHistoryInAnotherVolume(t *testing.T) {
	a := tree(files{"db/x": text1("\x00old")}, files{"db/x": text1("\x00new")})
	b := tree(files{}, files{"x": text1("\x00old")})
	b.Path = "/attic"
	r := Rules{History: []History{{Of: "/data/db", Under: "/attic"}}}
	report, err := Judge(t.Context(), []Tree{a, b}, r)
	if err != nil || report.Loss() != nil {
		t.Errorf("got %+v, %v", report, err)
	}
}

// TestHints: what is requested and not approved changes no verdict, but is told
// where it would.
func TestHints(t *testing.T) {
	all := Requested{
		Volatile:    pointers(t, "/data/f#/b", "/data/f#/list/*/n"),
		Transitions: []Transition{{At: pointers(t, "/data/f#/status")[0], From: "a", To: "b"}},
		History:     []History{{Of: "/data/f", Under: "/data/old"}},
	}
	for _, c := range []struct{ name, old, new, archive, want string }{
		{"volatile", `{"a":1,"b":1}`, `{"a":1,"b":2}`, "", "volatile /data/f#/b"},
		{"volatile below", `{"list":[{"i":1,"n":1}]}`, `{"list":[{"i":1,"n":2}]}`, "", "volatile /data/f#/list/*/n"},
		{"volatile, type changed", `{"a":1,"b":1}`, `{"a":1,"b":"2"}`, "", ""},
		{"transition", `{"status":"a"}`, `{"status":"b"}`, "", `transition at /data/f#/status from "a" to "b"`},
		{"another transition", `{"status":"a"}`, `{"status":"c"}`, "", ""},
		{"history", `{"x":1}`, `{}`, `{"x":1}`, "history of /data/f under /data/old"},
		{"nothing", `{"x":1}`, `{}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			new := files{"f": text1(c.new)}
			if c.archive != "" {
				new["old/1"] = text1(c.archive)
			}
			l := judged(t, files{"f": text1(c.old)}, new, Rules{Requested: all}).Loss()
			if l == nil {
				t.Fatal("what is not approved applied")
			}
			if c.want == "" && l.Hint != "" || c.want != "" && l.Hint != asked(c.want) {
				t.Errorf("got %q, want %q", l.Hint, c.want)
			}
		})
	}
	all.Recoverable = 30 * 24 * time.Hour
	if l := judged(t, files{"f": text1("a")}, files{}, Rules{Requested: all}).Loss(); l == nil || l.Hint != asked("recoverable 720h0m0s") {
		t.Errorf("got %+v", l)
	}
}
