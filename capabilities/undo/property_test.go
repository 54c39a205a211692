package undo

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var (
	genData = rapid.SampledFrom([]string{
		"", "x", "hello\n", strings.Repeat("0123456789", 7000), strings.Repeat("line\n", 60_000), strings.Repeat("\x00", 300_000),
	})
	genSize = rapid.SampledFrom([]int64{0, 1, 3, 100, maxInline, maxInline + 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize})
	genPath = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4).Draw(t, "names"), "/")
	})
	genModes = rapid.SampledFrom([]uint32{0o600, 0o644, 0o755, 0o700})
)

// growing makes a random tree. Modes that are not those of new files are in it
// where an overlay can give them.
func growing(t *rapid.T) forest {
	f := planted(nil)
	for range rapid.IntRange(0, 12).Draw(t, "paths") {
		path := genPath.Draw(t, "path")
		if !f.free(path) {
			continue
		}
		for i := range len(path) {
			if path[i] == '/' {
				f.dir(path[:i])
			}
		}
		it := item{kind: volume.File, mode: 0o644, time: when.Add(time.Duration(len(f)) * time.Minute)}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			it.kind, it.mode = volume.Dir, 0o755
		case 1:
			it.kind, it.data = volume.Symlink, "../"+path
		default:
			it.data = genData.Draw(t, "data")
		}
		if canChmod && it.kind != volume.Symlink {
			it.mode = fs.FileMode(genModes.Draw(t, "mode"))
		}
		f[path] = it
	}
	return f
}

// free reports whether something can be put at a path.
func (f forest) free(path string) bool {
	if _, ok := f[path]; ok {
		return false
	}
	for i := range len(path) {
		if it, ok := f[path[:i]]; ok && path[i] == '/' && it.kind != volume.Dir {
			return false
		}
	}
	return true
}

// lives does random things. What fails is no part of the call.
func lives(t *rapid.T, g guest) {
	t.Repeat(map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			_ = g.write(genPath.Draw(t, "path"), genData.Draw(t, "data"), genSize.Draw(t, "off"))
		},
		"replace": func(t *rapid.T) { _ = g.write(genPath.Draw(t, "path"), genData.Draw(t, "data"), -1) },
		"cut":     func(t *rapid.T) { _ = g.truncate(genPath.Draw(t, "path"), genSize.Draw(t, "size")) },
		"mkdir":   func(t *rapid.T) { _ = g.mkdir(genPath.Draw(t, "path")) },
		"remove":  func(t *rapid.T) { _ = g.rm(genPath.Draw(t, "path")) },
		"clear":   func(t *rapid.T) { _ = g.rmAll(genPath.Draw(t, "path")) },
		"move":    func(t *rapid.T) { _ = g.mv(genPath.Draw(t, "from"), genPath.Draw(t, "to")) },
		"touch": func(t *rapid.T) {
			_ = g.touch(genPath.Draw(t, "path"), time.Unix(int64(genSize.Draw(t, "time")), 5))
		},
		"": func(*rapid.T) {},
	})
}

// Whatever a call does: taking it back gives what was there, and taking that back
// what the call left, with contents, modes and times.
func TestUndoRestoresState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, growing(t), func(g guest) { lives(t, g) })
	})
}
