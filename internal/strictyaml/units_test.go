package strictyaml

import (
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1": 1, "65536": 65536, "1KiB": 1 << 10, "64MiB": 64 << 20, "1GiB": 1 << 30,
		"9223372036854775807": 1<<63 - 1,
	} {
		if got, ok := ParseSize(s); !ok || got != want {
			t.Errorf("%q: %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{
		"", "-1", "+1", "01", "1.5MiB", "1e3", "1MB", "1mib", "1 MiB", "MiB", "64M", "0x10", "1_000",
		"9223372036854775808", "9999999999999999GiB", "１",
	} {
		if got, ok := ParseSize(s); ok {
			t.Errorf("%q is %d", s, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond,
		"30d": 720 * time.Hour, "0d": 0, "36500d": 36500 * 24 * time.Hour,
	} {
		if got, ok := ParseDuration(s); !ok || got != want {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "5", "-5s", "1d12h", "1.5d", "36501d", "999999d", "d", "5 s", "1w", "1y"} {
		if got, ok := ParseDuration(s); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}
