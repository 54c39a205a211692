package strictyaml

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

var (
	sizePattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})(KiB|MiB|GiB)?$`)
	dayPattern  = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})d$`)
)

var sizeUnits = map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// ParseSize reads bytes as users write them: 65536, 64KiB, 64MiB, 1GiB.
func ParseSize(s string) (int64, bool) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := sizeUnits[m[2]]
	if err != nil || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// ParseDuration reads a duration as Go writes it (5s, 1m30s), or whole days (30d).
func ParseDuration(s string) (time.Duration, bool) {
	if m := dayPattern.FindStringSubmatch(s); m != nil {
		days, err := strconv.Atoi(m[1])
		return time.Duration(days) * 24 * time.Hour, err == nil && days <= maxDays
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// maxDays is the longest duration in days: 100 years, which a time.Duration holds.
const maxDays = 36500
