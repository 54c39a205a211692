package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/storetest"
)

func opened(t testing.TB, folder string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// corruptible is a store whose blobs can be changed on the disk.
type corruptible struct{ *Store }

func (c corruptible) CorruptBlob(t testing.TB, d store.Digest) {
	t.Helper()
	_, file := blobName(d)
	if err := os.WriteFile(filepath.Join(c.blobs.path, file), []byte("other content"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return corruptible{opened(t, t.TempDir())} })
}

func TestConformanceShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) (store.Store, store.Store) {
		folder := t.TempDir()
		return opened(t, folder), opened(t, folder)
	})
}
