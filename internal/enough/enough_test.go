package enough

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// recorder keeps what a test says, and is as well as before.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// TestCheck: draws go on until what is missing was reached, and not without end.
func TestCheck(t *testing.T) {
	for _, tt := range []struct{ after, rounds int }{{1, 1}, {7, 7}, {rounds, rounds}, {rounds + 1, rounds}} {
		done, drawn := 0, false
		r := &recorder{TB: t}
		Check(r, func(t *rapid.T) { drawn = true }, func() string {
			if !drawn {
				t.Error("a round without a draw")
			}
			done, drawn = done+1, false
			if done < tt.after {
				return "the rare case"
			}
			return ""
		})
		failed := len(r.said) == 1 && strings.HasSuffix(r.said[0], "the rare case")
		if done != tt.rounds || failed != (tt.after > rounds) || len(r.said) > 1 {
			t.Errorf("reached in round %d: %d rounds, %q", tt.after, done, r.said)
		}
	}
}
