package runtime

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCleanText: what is taken as it is written is what reading it and writing it
// again comes to, and what was written again is taken so.
func FuzzCleanText(f *testing.F) {
	for _, s := range []string{
		"", "plain", `a\nb`, `a\u000ab`, `\/`, `\\`, `\`, `"`, `\"`, "\n", "\x7f", "ü", "\xff", "\xed\xa0\x80", "\ufffd", "\u2028", `\b\f\r\t`, "<&>",
		`x","text":"y`, `x","annotations":{"priority":1},"uri":"y`, `\u00e9`, `\ud800`, `\x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, literal []byte) {
		raw := append(append([]byte(`{"type":"text","text":"`), literal...), `"}`...)
		again := func(raw []byte) ([]byte, error) {
			var b contentBlock
			if err := json.Unmarshal(raw, &b); err != nil {
				return nil, err
			}
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			if err := e.Encode(b); err != nil {
				return nil, err
			}
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), b.check()
		}
		want, err := again(raw)
		if cleanText(raw) && (err != nil || !bytes.Equal(want, raw)) {
			t.Errorf("%q is taken as it is, and comes to %q, %v", raw, want, err)
		}
		if err == nil && bytes.HasPrefix(want, []byte(`{"type":"text","text":`)) && bytes.Count(want, []byte(`":`)) == 2 &&
			!bytes.Contains(want, []byte(`\u`)) && !cleanText(want) {
			t.Errorf("%q is not taken as it is", want)
		}
	})
}
