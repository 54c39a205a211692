package trust

import (
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/tool"
)

func TestLockGolden(t *testing.T) {
	lock := func(source string, now time.Time, names ...string) []byte {
		s := open(t)
		s.now = func() time.Time { return now }
		for _, name := range names {
			c := notes(t, func(m *tool.Manifest) { m.Tools[0].Description = "Lists \u202eall <notes>." })
			c.Name, c.Source = name, source
			if name == "notes" {
				admit(t, s, c)
			} else if _, err := s.Approve(c); err != nil {
				t.Fatal(err)
			}
		}
		b, err := s.Lock()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := lock("/src/notes", day, "notes", "approved-notes")
	if other := lock("/home/other/notes", day.Add(time.Hour), "approved-notes", "notes"); string(other) != string(b) {
		t.Errorf("another machine writes\n%s", other)
	}
	golden(t, "lock.golden", b)
	golden(t, "lock-empty.golden", lock("", day))
}
