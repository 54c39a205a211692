package asyncify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/sandboxd/sandboxd/internal/regular"
)

const (
	maxResult = 128 << 20 // bytes
	lockPoll  = 50 * time.Millisecond
)

func (t *Tool) file(key string) string { return filepath.Join(t.options.Cache, key+".wasm") }

// kept returns a result of before. A file begins with the digest of the rest, and
// one that has another content is as good as none.
func (t *Tool) kept(key string) ([]byte, bool) {
	if t.options.Cache == "" {
		return nil, false
	}
	root, err := regular.Folder(t.options.Cache)
	if err != nil {
		return nil, false
	}
	defer root.Close()
	b, _, err := regular.ReadNoLink(root, key+".wasm", maxResult+sha256.Size)
	if err != nil || len(b) < sha256.Size {
		return nil, false
	}
	digest := sha256.Sum256(b[sha256.Size:])
	return b[sha256.Size:], bytes.Equal(digest[:], b[:sha256.Size])
}

// keep stores a result, whole or not at all.
func (t *Tool) keep(key string, out []byte) error {
	if t.options.Cache == "" {
		return nil
	}
	fault := func(err error) error { return fmt.Errorf("cache of wasm-opt's results: %w", err) }
	f, err := os.CreateTemp(t.options.Cache, "new-")
	if err != nil {
		return fault(err)
	}
	digest := sha256.Sum256(out)
	_, err = f.Write(append(digest[:], out...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), t.file(key))
	}
	if err != nil {
		return fault(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// lock keeps other processes on the cache from doing the same work at the same time.
func (t *Tool) lock(ctx context.Context) (unlock func(), err error) {
	if t.options.Cache == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(t.options.Cache, 0o700); err != nil {
		return nil, fmt.Errorf("cache folder: %w", err)
	}
	l := flock.New(filepath.Join(t.options.Cache, ".lock"), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("cache of wasm-opt's results: lock: %w", err)
	}
	return func() { l.Close() }, nil
}
