package stored

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// BenchmarkCommit is a call that writes a file of 4 KiB, from its snapshot to the
// end of its commit.
func BenchmarkCommit(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkCommit(b, memstore.New()) })
	b.Run("sqlite", func(b *testing.B) {
		db, err := sqlite.Open(b.Context(), sqlite.Options{Folder: b.TempDir()})
		must(b, err)
		benchmarkCommit(b, db)
		must(b, db.Close())
	})
}

func benchmarkCommit(b *testing.B, s store.Store) {
	plant(b, s, map[string]string{"f": "x"})
	data := bytes.Repeat([]byte("0123456789abcdef"), 256)
	for i := 0; b.Loop(); i++ {
		tree := now(b, s)
		g := over(b, tree)
		must(b, g.write("f", append(data, strconv.Itoa(i)...), 0))
		c, err := g.Change()
		must(b, err)
		must(b, apply(b.Context(), s, tree, c))
		must(b, g.Close())
	}
}

func BenchmarkRead(b *testing.B) {
	s := memstore.New()
	plant(b, s, map[string]string{"f": strings.Repeat("0123456789abcdef", 10<<20/16)})
	b.SetBytes(10 << 20)
	for b.Loop() {
		must(b, Read(b.Context(), now(b, s), "f", io.Discard))
	}
}
