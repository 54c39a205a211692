package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

const day = 24 * time.Hour

// later is what may be removed some time from now.
func later(d time.Duration) store.Prune { return store.Prune{Now: time.Now().Add(d)} }

func (h *harness) putBlob(data string) store.Digest {
	h.Helper()
	d, err := h.PutBlob(h.ctx(), []byte(data))
	h.must(err)
	if want := store.Digest(sha256.Sum256([]byte(data))); d != want {
		h.Fatalf("digest %v, want %v", d, want)
	}
	return d
}

func (h *harness) hasBlob(d store.Digest, data string) {
	h.Helper()
	got, err := h.Blob(h.ctx(), d)
	if err != nil || string(got) != data {
		h.Errorf("blob %.20q: %.20q, %v", data, got, err)
	}
}

func (h *harness) blobGone(d store.Digest) {
	h.Helper()
	if got, err := h.Blob(h.ctx(), d); !errors.Is(err, store.ErrGone) {
		h.Errorf("blob: %.20q, %v; want it gone", got, err)
	}
}

func testBlobs(h *harness) {
	h.blobGone(store.Digest{})
	contents := []string{"", "a", "\x00\xff", strings.Repeat("large", store.MaxBlob/5), string(make([]byte, store.MaxBlob))}
	for _, data := range contents {
		d := h.putBlob(data)
		h.hasBlob(d, data)
		if again := h.putBlob(data); again != d {
			h.Error("the same content has two digests")
		}
	}
	for _, data := range contents {
		h.hasBlob(store.Digest(sha256.Sum256([]byte(data))), data)
	}
	data := []byte("mine")
	d, err := h.PutBlob(h.ctx(), data)
	h.must(err)
	data[0] = 'X'
	h.hasBlob(d, "mine")
}

// testBlobsTogether puts the same contents from many sides.
func testBlobsTogether(h *harness) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 10 {
				data := fmt.Sprint("content ", i)
				d, err := h.PutBlob(h.ctx(), []byte(data))
				if err != nil {
					h.Error(err)
					return
				}
				if got, err := h.Blob(h.ctx(), d); err != nil || string(got) != data {
					h.Errorf("%q: %q, %v", data, got, err)
				}
			}
		})
	}
	wg.Wait()
}

func testBlobCollection(h *harness) {
	free, kept, shared, replaced := h.putBlob("free"), h.putBlob("kept"), h.putBlob("shared"), h.putBlob("replaced")
	naming := func(name string, ds ...store.Digest) store.Write {
		return store.Write{Key: key(name), Value: []byte("v"), Blobs: ds}
	}
	h.write(naming("a", kept, shared, shared), naming("b", shared), naming("c", replaced))
	h.write(put("c", "without"))
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now()}))
	for d, data := range map[store.Digest]string{free: "free", kept: "kept", shared: "shared", replaced: "replaced"} {
		h.hasBlob(d, data) // young
	}
	h.must(h.Prune(h.ctx(), store.Prune{Now: time.Now().Add(3 * day), Replaced: 10 * day}))
	h.blobGone(free)
	for d, data := range map[store.Digest]string{kept: "kept", shared: "shared", replaced: "replaced"} {
		h.hasBlob(d, data) // named by what is live, or by what was replaced and is kept
	}
	h.prunedTwice(6 * day)
	h.blobGone(replaced)
	h.hasBlob(kept, "kept")
	h.write(del("a"))
	h.prunedTwice(9 * day)
	h.blobGone(kept)
	h.hasBlob(shared, "shared")
	h.write(naming("b", shared)) // replaced by one that names it as well
	h.prunedTwice(12 * day)
	h.hasBlob(shared, "shared")
	w := naming("b", shared)
	w.Expires = time.Now().Add(time.Hour)
	h.write(w)
	h.prunedTwice(15 * day)
	h.blobGone(shared)
	h.hasBlob(h.putBlob("free"), "free")
}

// prunedTwice prunes now and three days later: what values named that go with
// the first time goes with the second one.
func (h *harness) prunedTwice(in time.Duration) {
	h.Helper()
	h.must(h.Prune(h.ctx(), later(in)))
	h.must(h.Prune(h.ctx(), later(in+3*day)))
}

func testCorrupt(h *harness) {
	c, ok := h.Store.(Corrupter)
	if !ok {
		h.Skip("this store does not tell how to change a blob")
	}
	d := h.putBlob("sound content")
	h.write(store.Write{Key: key("k"), Blobs: []store.Digest{d}})
	c.CorruptBlob(h.T, d)
	if got, err := h.Blob(h.ctx(), d); err == nil || errors.Is(err, store.ErrGone) || got != nil {
		h.Errorf("a blob that the disk changed: %q, %v", got, err)
	}
	// Whoever has the content can mend it.
	h.putBlob("sound content")
	h.hasBlob(d, "sound content")
}

func testUsage(h *harness) {
	usage := func(s store.Space, want store.Usage) {
		h.Helper()
		got, err := h.Usage(h.ctx(), s)
		h.must(err)
		if got != want {
			h.Errorf("usage of %v: %v, want %v", s, got, want)
		}
	}
	other := store.Space{Principal: "bob", Package: "notes", Area: "kv"}
	usage(space, store.Usage{})
	h.write(put("abc", "12345"), put("", "1"), store.Write{Key: store.Key{Space: other, Name: "x"}})
	usage(space, store.Usage{Keys: 2, Bytes: 9})
	usage(other, store.Usage{Keys: 1, Bytes: 1})
	h.write(put("abc", "1"), del("none"))
	usage(space, store.Usage{Keys: 2, Bytes: 5})
	d := h.putBlob(string(bytes.Repeat([]byte("b"), 1000)))
	h.write(store.Write{Key: key("abc"), Value: []byte("1"), Blobs: []store.Digest{d}})
	usage(space, store.Usage{Keys: 2, Bytes: 1005})
	h.write(del(""), put("abc", "12"))
	usage(space, store.Usage{Keys: 1, Bytes: 5})
	h.write(del("abc"))
	usage(space, store.Usage{})
	usage(other, store.Usage{Keys: 1, Bytes: 1})
}
