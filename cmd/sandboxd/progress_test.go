package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Compiling is told once it takes long, and not where building was told and
// nobody watches.
func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		always, terminal bool
		building         string
		takes            time.Duration
		want             string
	}{
		"short":                {always: true, takes: worthTelling / 2},
		"long":                 {always: true, takes: worthTelling * 2, want: "compiling p, 2.0 MB\n"},
		"built before":         {always: true, building: "building p (go)\n", takes: worthTelling * 2, want: "building p (go)\n"},
		"another was built":    {always: true, building: "building q (go)\n", takes: worthTelling * 2, want: "building q (go)\ncompiling p, 2.0 MB\n"},
		"built, on a terminal": {always: true, terminal: true, building: "building p (go)\n", takes: worthTelling * 2, want: "building p (go)\ncompiling p, 2.0 MB\n"},
		"nobody watches":       {building: "building p (go)\n", takes: worthTelling * 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := newProgress(&out)
			if p.terminal = c.terminal; c.always {
				p.always(&out)
			}
			if _, err := p.Write([]byte(c.building)); err != nil {
				t.Fatal(err)
			}
			done := p.compiling().Compile("p", 2e6)
			time.Sleep(c.takes)
			if done != nil {
				done()
			}
			if out.String() != c.want {
				t.Errorf("%s: %q, want %q", name, out.String(), c.want)
			}
		})
	}
}
