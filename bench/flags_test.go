package bench

import (
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	rounds  = flag.Int("rounds", 1, "rounds of a report, each way once a round")
	each    = flag.Duration("each", 20*time.Millisecond, "how long a way runs in a round")
	callers = flag.String("callers", "1", "numbers of concurrent callers, separated by commas")
)

func numbers(t *testing.T, list string) (out []int) {
	t.Helper()
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}
