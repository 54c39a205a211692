package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func digestOf(data string) store.Digest { return sha256.Sum256([]byte(data)) }

// openedWith opens a folder whose blobs are elsewhere.
func openedWith(t testing.TB, folder string, d disk) *Store {
	t.Helper()
	s, err := open(t.Context(), Options{Folder: folder}, "", func(string) (disk, error) { return d, nil })
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

func putBlob(t testing.TB, s *Store, data string) store.Digest {
	t.Helper()
	d, err := s.PutBlob(t.Context(), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func hasBlob(t testing.TB, s *Store, data string) {
	t.Helper()
	if got, err := s.Blob(t.Context(), digestOf(data)); err != nil || string(got) != data {
		t.Errorf("blob %q: %q, %v", data, got, err)
	}
}

// TestBlobFaults fails each operation of putting a blob, and lets the power go
// away after it: what was put is there, what failed can be put again.
func TestBlobFaults(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, existing := range []bool{false, true} {
			failed := 0
			for k := 1; k <= 14; k++ {
				folder, d := t.TempDir(), newMemDisk()
				s := openedWith(t, folder, d)
				if existing { // the folder is there
					putBlob(t, s, "first")
				}
				d.failing(func(op int, _ string) error {
					if op == k {
						return fault
					}
					return nil
				})
				_, err := s.PutBlob(t.Context(), []byte("content"))
				d.failing(nil)
				if err != nil {
					failed++
					if !errors.Is(err, fault) {
						t.Errorf("operation %d: %v, want %v", k, err, fault)
					}
					if _, err := s.Blob(t.Context(), digestOf("content")); err != nil && !errors.Is(err, store.ErrGone) {
						t.Errorf("operation %d: a blob that failed is %v", k, err)
					}
					putBlob(t, s, "content")
				}
				hasBlob(t, s, "content")
				after := openedWith(t, folder, d.powerLoss())
				hasBlob(t, after, "content")
				if existing {
					hasBlob(t, after, "first")
				}
			}
			if failed < 8 {
				t.Errorf("%d operations failed: the faults miss", failed)
			}
		}
	}
}

// TestBlobTouch: whoever puts what is there keeps it for another day.
func TestBlobTouch(t *testing.T) {
	d := newMemDisk()
	s := openedWith(t, t.TempDir(), d)
	putBlob(t, s, "touched")
	putBlob(t, s, "old")
	ageRows(t, s, 20*time.Hour)
	d.age(20 * time.Hour)
	putBlob(t, s, "touched")
	if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(10 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	hasBlob(t, s, "touched")
	if _, err := s.Blob(t.Context(), digestOf("old")); !errors.Is(err, store.ErrGone) {
		t.Errorf("an old blob: %v, want it gone", err)
	}
	// Young ones are put without a write.
	before := state(t, s)
	d.failing(func(_ int, what string) error {
		if what != "open" {
			return syscall.EIO
		}
		return nil
	})
	putBlob(t, s, "touched")
	d.failing(nil)
	if after := state(t, s); after != before {
		t.Errorf("state %v, was %v", after, before)
	}
}

// ageRows makes blobs older, in the file.
func ageRows(t testing.TB, s *Store, by time.Duration) {
	t.Helper()
	err := s.queue.do(t.Context(), func(g *group) error {
		g.changed = true
		return g.c.exec("UPDATE blobs SET at = at - ?", int64(by))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// state is the row that every group changes.
func state(t testing.TB, s *Store) (out [4]int64) {
	t.Helper()
	err := s.queue.do(t.Context(), func(g *group) error {
		out = [4]int64{g.version, g.horizon, g.record, g.journal}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBlobMissing: a blob whose file somebody removed is gone, and is written
// again when it is put.
func TestBlobMissing(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	d := putBlob(t, s, "content")
	_, file := blobName(d)
	if err := os.Remove(filepath.Join(folder, blobFolder, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), d); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v, want it gone", err)
	}
	putBlob(t, s, "content")
	hasBlob(t, s, "content")
}

func TestBlobDamaged(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	d := putBlob(t, s, "content")
	_, file := blobName(d)
	path := filepath.Join(folder, blobFolder, file)
	for _, wrong := range []string{"", "contenT", "content and more", strings.Repeat("x", store.MaxBlob+10)} {
		if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Blob(t.Context(), d)
		damaged, ok := errors.AsType[*DamagedError](err)
		if !ok || damaged.Path != path || damaged.Mend == "" {
			t.Errorf("%d bytes: %v, want the file to be told damaged", len(wrong), err)
		}
	}
}

// TestBlobTwice: a value that names a blob twice takes it once.
func TestBlobTwice(t *testing.T) {
	s := opened(t, t.TempDir())
	d := putBlob(t, s, "content")
	k := store.Key{Space: faultSpace, Name: "k"}
	if _, err := s.Commit(t.Context(), &store.Commit{ID: "id", Writes: []store.Write{{Key: k, Blobs: []store.Digest{d, d}}}}); err != nil {
		t.Fatal(err)
	}
	if u, err := s.Usage(t.Context(), faultSpace); err != nil || u != (store.Usage{Keys: 1, Bytes: 8}) {
		t.Errorf("usage %v, %v", u, err)
	}
}

// TestSweep removes what processes left that were killed, and nothing else.
func TestSweep(t *testing.T) {
	d := newMemDisk()
	folder := t.TempDir()
	s := openedWith(t, folder, d)
	kept := putBlob(t, s, "kept")
	_, keptFile := blobName(kept)
	stray := func(name string) {
		t.Helper()
		if err := d.Mkdir(name[:strings.Index(name, "/")]); err != nil {
			t.Fatal(err)
		}
		f, err := d.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, unknown := blobName(store.Digest{1})
	_, young := blobName(store.Digest{2})
	stray(temporary + "/old")
	stray(unknown)
	stray("ab/notes of somebody")
	stray("other/file")
	d.age(30 * time.Hour)
	stray(temporary + "/young")
	stray(young)
	if err := s.Prune(t.Context(), store.Prune{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		keptFile: true, temporary + "/old": false, unknown: false, "ab/notes of somebody": true, "other/file": true,
		temporary + "/young": true, young: true,
	} {
		if _, err := d.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	hasBlob(t, s, "kept")
}

// TestBlobsWhileCollecting puts and names blobs while others collect all that
// they can: what was committed is never missing.
func TestBlobsWhileCollecting(t *testing.T) {
	folder := t.TempDir()
	a, b := opened(t, folder), opened(t, folder)
	stop := make(chan struct{})
	var collecting, putting sync.WaitGroup
	for _, s := range []*Store{a, b} {
		collecting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Prune(t.Context(), store.Prune{Now: time.Now().Add(48 * time.Hour)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	gone := 0
	var mu sync.Mutex
	for c := range 4 {
		s := []*Store{a, b}[c%2]
		putting.Go(func() {
			for i := range 15 {
				data := fmt.Sprint("content ", i%5)
				d, err := s.PutBlob(t.Context(), []byte(data))
				if err != nil {
					t.Error(err)
					return
				}
				k := store.Key{Space: faultSpace, Name: fmt.Sprint(c, " ", i)}
				_, err = s.Commit(t.Context(), &store.Commit{ID: k.Name, Writes: []store.Write{{Key: k, Blobs: []store.Digest{d}}}})
				if errors.Is(err, store.ErrGone) { // collected two days too early, as asked for
					mu.Lock()
					gone++
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := s.Blob(t.Context(), d); err != nil || string(got) != data {
					t.Errorf("a blob that is named: %q, %v", got, err)
				}
			}
		})
	}
	putting.Wait()
	close(stop)
	collecting.Wait()
	if gone == 4*15 {
		t.Error("no commit came through")
	}
	soundFile(t, a)
}
