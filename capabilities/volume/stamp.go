package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"time"
)

// Same reports whether both stamps identify the same version of a file,
// whatever the time zones of their times.
func (s Stamp) Same(t Stamp) bool {
	return s.Exists == t.Exists && s.Kind == t.Kind && s.Mode == t.Mode && s.Size == t.Size &&
		s.ModTime.Equal(t.ModTime) && s.Changed.Equal(t.Changed) && s.Inode == t.Inode &&
		s.Digest == t.Digest && s.Version == t.Version
}

// ListingDigest returns what [Listing] compares: hex SHA-256 over the names
// and kinds of a directory's entries, which are sorted by name. Names that the
// host reserves do not count.
func ListingDigest(dir string, entries []Entry) string {
	h := sha256.New()
	for _, e := range entries {
		if dir == "." && reserved(e.Name) {
			continue
		}
		h.Write([]byte(e.Name))
		h.Write([]byte{0, byte(e.Kind)})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The times that a file system call can carry as nanoseconds since 1970, which
// are also times that JSON can carry.
var (
	minTime = time.Unix(0, math.MinInt64).UTC()
	maxTime = time.Unix(0, math.MaxInt64).UTC()
)

// plainTime returns t as data: in UTC, without a monotonic reading, and within
// the range that the host and JSON can express.
func plainTime(t time.Time) time.Time {
	t = t.Round(0).UTC()
	switch {
	case t.Before(minTime):
		return minTime
	case t.After(maxTime):
		return maxTime
	}
	return t
}
