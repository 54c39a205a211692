package undo

import (
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/memstore"
)

// Zeros take no blobs, whether they have to be written again or not.
func TestZeros(t *testing.T) {
	hole := strings.Repeat("\x00", 4*chunkSize)
	for name, do := range map[string]func(g guest) error{
		"removed":     func(g guest) error { return g.rm("hole") },
		"overwritten": func(g guest) error { return g.write("hole", strings.Repeat("x", 3*chunkSize), chunkSize/2) },
		"cut":         func(g guest) error { return g.truncate("hole", 1) },
	} {
		b, blobs := planted(map[string]string{"hole": hole}), &putCounter{Blobs: memstore.New()}
		g := over(b, 1)
		must(t, do(g))
		rec := recorded(t, blobs, b, g)
		if blobs.bytes != 0 || rec.Size != 0 || !rec.Complete() {
			t.Errorf("%s: %d bytes put, size %d, lost %v", name, blobs.bytes, rec.Size, rec.Lost)
		}
		sameImage(t, name, image(t, undone(t, nil, g.Result(), rec).Result()), image(t, b))
	}
}
