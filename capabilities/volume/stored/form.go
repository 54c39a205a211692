package stored

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const (
	// chunkSize is the size in bytes of the pieces of a file that is not kept
	// whole; the last one is what is left.
	chunkSize = 256 << 10

	// maxInline is the size in bytes up to which a file is kept whole.
	maxInline = 64 << 10

	// maxChunks bounds a file: the list of its pieces is one value.
	maxChunks = (store.MaxValue - 2) / len(store.Digest{})
	maxSize   = int64(maxChunks) * chunkSize

	entryBytes = 4
	fileBytes  = entryBytes + 16
	timeBytes  = 9
)

// form is the first byte of each value.
const form = 1

// The second byte of an entry, and of a content.
const (
	tagFile   = 1
	tagDir    = 2
	tagInline = 1
	tagChunks = 2
)

// errForm: a value is not one that this package has written.
var errForm = errors.New("stored volume: value of unknown form")

// entry is what the store has at a path, but for the content of a file and the
// time of a directory.
type entry struct {
	kind volume.Kind // File or Dir
	mode fs.FileMode
	time time.Time // of a file
	size int64     // of a file
}

// encode returns the value of an entry's key: form, kind, mode and, of a file,
// modification time in nanoseconds since 1970 and size, each big endian.
func (e entry) encode() []byte {
	b := make([]byte, 0, fileBytes)
	if e.kind == volume.Dir {
		return binary.BigEndian.AppendUint16(append(b, form, tagDir), uint16(e.mode))
	}
	b = binary.BigEndian.AppendUint16(append(b, form, tagFile), uint16(e.mode))
	b = binary.BigEndian.AppendUint64(b, uint64(e.time.UnixNano()))
	return binary.BigEndian.AppendUint64(b, uint64(e.size))
}

func decodeEntry(b []byte) (entry, error) {
	if len(b) < entryBytes || b[0] != form {
		return entry{}, errForm
	}
	e := entry{mode: fs.FileMode(binary.BigEndian.Uint16(b[2:]))}
	if e.mode&^fs.ModePerm != 0 {
		return entry{}, errForm
	}
	switch {
	case b[1] == tagDir && len(b) == entryBytes:
		e.kind = volume.Dir
		return e, nil
	case b[1] == tagFile && len(b) == fileBytes:
		e.time = unixNano(b[entryBytes:])
		e.size = int64(binary.BigEndian.Uint64(b[entryBytes+8:]))
		if e.size >= 0 && e.size <= maxSize {
			return e, nil
		}
	}
	return entry{}, errForm
}

// encodeTime returns the value of a time's key.
func encodeTime(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, timeBytes), form), uint64(t.UnixNano()))
}

func decodeTime(b []byte) (time.Time, error) {
	if len(b) != timeBytes || b[0] != form {
		return time.Time{}, errForm
	}
	return unixNano(b[1:]), nil
}

func unixNano(b []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
}

// The times that can be kept.
var (
	minTime = time.Unix(0, math.MinInt64)
	maxTime = time.Unix(0, math.MaxInt64)
)

func keepable(t time.Time) bool { return !t.Before(minTime) && !t.After(maxTime) }

// content is what a file holds: the bytes themselves or the digests of its
// pieces. The zero digest is that of a hole: a piece of zeros.
type content struct {
	inline []byte
	chunks []store.Digest // nil: inline
}

// hole is the digest of a piece of zeros, of any length.
var hole store.Digest

func (c content) encode() []byte {
	if c.chunks == nil {
		return append([]byte{form, tagInline}, c.inline...)
	}
	b := append(make([]byte, 0, 2+len(c.chunks)*len(hole)), form, tagChunks)
	for _, d := range c.chunks {
		b = append(b, d[:]...)
	}
	return b
}

func decodeContent(b []byte) (content, error) {
	if len(b) < 2 || b[0] != form {
		return content{}, errForm
	}
	tag, b := b[1], b[2:]
	switch {
	case tag == tagInline && len(b) <= maxInline:
		return content{inline: b}, nil
	case tag == tagChunks && len(b) > 0 && len(b)%len(hole) == 0 && len(b)/len(hole) <= maxChunks:
		c := content{chunks: make([]store.Digest, len(b)/len(hole))}
		for i := range c.chunks {
			copy(c.chunks[i][:], b[i*len(hole):])
		}
		return c, nil
	}
	return content{}, errForm
}

// fits reports whether a content can be that of a file of a size.
func (c content) fits(size int64) bool {
	if c.chunks == nil {
		return int64(len(c.inline)) == size
	}
	return chunksOf(size) == int64(len(c.chunks))
}

// bytes returns the memory that a content holds.
func (c content) bytes() int { return len(c.inline) + len(c.chunks)*len(hole) }

// blobs returns the digests that a content names, each once.
func (c content) blobs() []store.Digest {
	var list []store.Digest
	seen := make(map[store.Digest]struct{}, len(c.chunks))
	for _, d := range c.chunks {
		if _, twice := seen[d]; !twice && d != hole {
			seen[d] = struct{}{}
			list = append(list, d)
		}
	}
	return list
}

// chunksOf returns how many pieces a file of a size has.
func chunksOf(size int64) int64 { return (size + chunkSize - 1) / chunkSize }

// chunkEnd returns where piece i of a file of a size ends.
func chunkEnd(i, size int64) int64 { return min((i+1)*chunkSize, size) }
