package stored

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// made is a store that makes the pieces of a large file anew when they are read:
// it holds none of them, so that what is held is the volume's.
type made struct {
	store.Store

	mu      sync.Mutex
	pieces  map[store.Digest]uint64
	held    map[store.Digest][]byte // those that are not of the file
	puts    int
	putting int
	most    int // at once
	heap    uint64
}

func newMade() *made {
	return &made{Store: memstore.New(), pieces: map[store.Digest]uint64{}, held: map[store.Digest][]byte{}}
}

// piece returns piece n of the file.
func piece(n uint64, size int) []byte {
	b := make([]byte, size)
	for i := 0; i+8 <= len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], n)
	}
	return b
}

func (m *made) PutBlob(_ context.Context, data []byte) (store.Digest, error) {
	m.mu.Lock()
	m.puts++
	m.putting++
	m.most = max(m.most, m.putting)
	weigh := m.puts%50 == 0
	m.mu.Unlock()
	d := store.Digest(sha256.Sum256(data))
	n := binary.BigEndian.Uint64(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(data) == chunkSize && store.Digest(sha256.Sum256(piece(n, chunkSize))) == d {
		m.pieces[d] = n
	} else {
		m.held[d] = append([]byte(nil), data...)
	}
	if weigh {
		m.heap = max(m.heap, heap())
	}
	m.putting--
	return d, nil
}

func (m *made) Blob(_ context.Context, d store.Digest) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok := m.pieces[d]; ok {
		return piece(n, chunkSize), nil
	}
	if b, ok := m.held[d]; ok {
		return b, nil
	}
	return nil, store.ErrGone
}

// heap returns the bytes that are in use.
func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// largeFS has one file, "large", that is made as it is read.
type largeFS struct{ pieces uint64 }

type largeFile struct {
	fs.FileInfo
	name   string
	rest   uint64
	n      uint64
	unread []byte
}

func (l largeFS) Open(name string) (fs.File, error) {
	switch name {
	case ".", "large":
		return &largeFile{name: name, rest: l.pieces, n: 1}, nil
	}
	return nil, fs.ErrNotExist
}

func (f *largeFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *largeFile) Info() (fs.FileInfo, error) { return f, nil }
func (f *largeFile) Close() error               { return nil }
func (f *largeFile) Name() string               { return f.name }
func (f *largeFile) IsDir() bool                { return f.name == "." }
func (f *largeFile) Type() fs.FileMode          { return f.Mode().Type() }
func (f *largeFile) ModTime() time.Time         { return at() }
func (f *largeFile) ReadDir(int) (list []fs.DirEntry, _ error) {
	return []fs.DirEntry{&largeFile{name: "large"}}, nil
}

func (f *largeFile) Mode() fs.FileMode {
	if f.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

func (f *largeFile) Read(p []byte) (int, error) {
	if len(f.unread) == 0 {
		if f.rest == 0 {
			return 0, io.EOF
		}
		f.unread = piece(f.n, chunkSize)
		f.n, f.rest = f.n+1, f.rest-1
	}
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	return n, nil
}

// Files of 10 and 100 MB come in, are read and change with some pieces in memory,
// whatever their size.
func TestLargeFiles(t *testing.T) {
	for _, megabytes := range []uint64{10, 100} {
		t.Run(fmt.Sprint(megabytes), func(t *testing.T) {
			pieces := megabytes << 20 / chunkSize
			m := newMade()
			before := heap()
			_, err := Import(t.Context(), m, space, largeFS{pieces}, ImportOptions{})
			must(t, err)
			if m.most > maxPutting || m.puts != int(pieces) {
				t.Errorf("%d pieces put, %d at once", m.puts, m.most)
			}
			tree := now(t, m)
			sum := sha256.New()
			must(t, Read(t.Context(), tree, "large", sum))
			want := sha256.New()
			for n := range pieces {
				want.Write(piece(n+1, chunkSize))
			}
			if string(sum.Sum(nil)) != string(want.Sum(nil)) {
				t.Error("other content")
			}

			m.puts = 0
			g := over(t, tree)
			size := int64(pieces * chunkSize)
			must(t, g.write("large", []byte("0123456789"), size))
			must(t, apply(t.Context(), m, tree, g.change(t)))
			if m.puts > 2 {
				t.Errorf("%d pieces put for ten bytes", m.puts)
			}
			m.heap = max(m.heap, heap())
			if m.heap > before+16<<20 {
				t.Errorf("%d bytes in use, %d before", m.heap, before)
			}
			f, err := now(t, m).Open("large")
			must(t, err)
			b := make([]byte, 20)
			n, err := f.ReadAt(b, size-2)
			if string(b[:n]) != string(piece(pieces, 8)[6:])+"0123456789" || !errors.Is(err, io.EOF) {
				t.Errorf("%q, %v", b[:n], err)
			}
			must(t, f.Close())
		})
	}
}
