package additive

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMessages shows what is said about a loss of each sort, and what about
// requests that nobody approved.
func TestMessages(t *testing.T) {
	requested := Rules{Requested: Requested{
		Volatile:    pointers(t, "/data/f#/next_id"),
		Transitions: []Transition{{At: pointers(t, "/data/f#/status")[0], From: "pending", To: "accepted"}},
		History:     []History{{Of: "/data/book.md", Under: "/data/history"}},
		Recoverable: 30 * 24 * time.Hour,
	}}
	var b bytes.Buffer
	say := func(old, new files, r Rules) {
		for _, l := range judged(t, old, new, r).Losses {
			fmt.Fprintf(&b, "%s: %s\n", l.Object, l.Why)
			if l.Hint != "" {
				fmt.Fprintf(&b, "    %s\n", l.Hint)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range pathCases {
		say(c.old, c.new, Rules{})
	}
	for _, c := range contentCases {
		if _, why, _ := strings.Cut(c.want, ": "); why != "" && !seen[why] {
			seen[why] = true
			say(files{"f": text1(c.old)}, files{"f": text1(c.new)}, Rules{})
		}
	}
	say(files{"f.log": text1("\x00a")}, files{"f.log": text1("\x00b")}, Rules{AppendOnly: []string{"*.log"}})
	deep := strings.Repeat("[", maxDepth+1)
	say(files{"deep": text1(deep)}, files{"deep": text1("[" + deep)}, Rules{})
	b.WriteString("\nRequested, not approved:\n")
	say(files{"f": text1(`{"next_id":1}`)}, files{"f": text1(`{"next_id":2}`)}, requested)
	say(files{"f": text1(`{"status":"pending"}`)}, files{"f": text1(`{"status":"accepted"}`)}, requested)
	say(files{"book.md": text1("a\n")}, files{"book.md": text1("b\n"), "history/1": text1("a\n")}, requested)
	say(files{"f": text1("a\n")}, files{"f": text1("b\n")}, requested)
	say(files{"f": {kind: volume.Symlink, content: "a"}, "g": text1("")}, files{"f": {kind: volume.Symlink, content: "b"}}, requested)
	golden(t, "messages.txt", b.Bytes())
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the change\n got %s\nwant %s", name, got, want)
	}
}

// TestMessagesHaveNoContents: what is said holds nothing of a file but keys, and
// these where they belong.
func TestMessagesHaveNoContents(t *testing.T) {
	const secret = "s3cr3t"
	for _, c := range []struct{ old, new string }{
		{`{"a":"` + secret + `"}`, `{"a":"x"}`},
		{`{"a":"x"}`, `{"a":"` + secret + `"}`},
		{`{"` + secret + `":"x"}`, `{}`},
		{secret + "\n", "x\n"},
		{"x\n", secret + "\n"},
		{"\x00" + secret, secret},
	} {
		for _, l := range judged(t, files{"f": text1(c.old)}, files{"f": text1(c.new)}, Rules{}).Losses {
			if strings.Contains(l.Why+l.Hint, secret) {
				t.Errorf("%+v", l)
			}
		}
	}
}
