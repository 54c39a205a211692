package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzScanner: what is read is JSON for encoding/json and the other way round,
// but for its depth.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{
		"", "0", "-0.5e+7", "01", "1.", "-", "1e", "[1,]", "{,}", `{"a":}`, `{"a" : [ true , false,null ]} `, `"\u12aF\"\/"`, `"\u12g0"`, `"\x"`, `"\u123`, "\"\n\"",
		"\"\xff\"", "[[]", "]", "tru", "\u00a0", strings.Repeat("[", 70) + strings.Repeat("]", 70),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &scanner{ctx: context.Background(), in: b}
		err := s.value(0)
		if errors.Is(err, errDepth) {
			return
		}
		whole := err == nil && s.peek() == 0 && s.at == len(b)
		if valid := json.Valid(b); whole != valid {
			t.Errorf("%q: read %v (%v), valid %v", b, whole, err, valid)
		}
	})
}

// TestScanningHonoursTheContext in a long text and in many values.
func TestScanningHonoursTheContext(t *testing.T) {
	gone := errors.New("gone")
	for name, in := range map[string]string{
		"text":   `{"structuredContent":"` + strings.Repeat("a", 4*scanPace) + `"}`,
		"values": `{"content":[` + strings.Repeat("0,", 4*scanPace) + `0]}`,
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(gone)
		if _, _, err := parseOutput(ctx, []byte(in), 1<<30); !errors.Is(err, gone) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
