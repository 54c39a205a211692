package volume

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func BenchmarkReadSmallWriteCommit(b *testing.B) {
	h, _ := planted(b, map[string]string{"f": strings.Repeat("x", 4096)})
	for i := 0; b.Loop(); i++ {
		g := &guest{New(h, Options{Budget: ample()})}
		g.content(b, "f")
		must(b, g.write("f", strconv.Itoa(i), 100))
		must(b, g.commit(b, h))
		must(b, g.Close())
	}
}

// BenchmarkOverlay is what a call costs that reads a file, writes one, and is
// prepared, but not committed.
func BenchmarkOverlay(b *testing.B) {
	h, _ := planted(b, map[string]string{"f": strings.Repeat("x", 4096)})
	time.Sleep(2 * tick)
	b.ReportAllocs()
	for b.Loop() {
		g := &guest{New(h, Options{Budget: ample()})}
		g.content(b, "f")
		must(b, g.write("new", "hello", 0))
		_, err := g.Change()
		must(b, err)
		must(b, g.Close())
	}
}
