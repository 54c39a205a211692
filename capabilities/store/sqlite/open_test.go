package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func TestOpenAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state", "a folder?with#signs %41")
	s, err := Open(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Commit(t.Context(), mark("first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, fileName)); err != nil {
		t.Error(err)
	}
	s = opened(t, folder)
	(&outcomes{done: []string{"first"}}).hold(t, s)
	if w, err := s.Commit(t.Context(), mark("first")); err != nil || w != v {
		t.Errorf("a commit that was done: %d, %v; want %d", w, err, v)
	}
	if w, err := s.Commit(t.Context(), mark("second")); err != nil || w <= v {
		t.Errorf("version %d, %v, after %d", w, err, v)
	}
	heads, err := s.Heads(t.Context())
	if err != nil || len(heads) != 2 {
		t.Errorf("heads %v, %v; want a chain for each time it was open", heads, err)
	}
}

func TestModes(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("modes are not the system's")
	}
	folder := filepath.Join(t.TempDir(), "state")
	s := opened(t, folder)
	putBlob(t, s, "content")
	if _, err := s.Commit(t.Context(), mark("id")); err != nil {
		t.Fatal(err)
	}
	found := 0
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		found++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || found < 7 {
		t.Errorf("%d files, %v", found, err)
	}
}

// changed lets somebody else change the file of a closed store.
func changed(t *testing.T, change func(path string)) string {
	t.Helper()
	folder := t.TempDir()
	s, err := Open(t.Context(), Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := s.Commit(t.Context(), mark(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	change(filepath.Join(folder, fileName))
	return folder
}

func execute(t *testing.T, path string, sql string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(sql), c.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNewerSchema(t *testing.T) {
	folder := changed(t, func(path string) { execute(t, path, "UPDATE schema SET version = 99") })
	path := filepath.Join(folder, fileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Folder: folder})
	newer, ok := errors.AsType[*SchemaError](err)
	if !ok || newer.Have != 99 || newer.Know != len(migrations) || newer.Path != path {
		t.Errorf("%v, want the schemas told", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Error("the file was changed")
	}
}

func TestForeign(t *testing.T) {
	for name, sql := range map[string]string{
		"table": "CREATE TABLE somebody (x)", "application": "PRAGMA application_id = 7; CREATE TABLE schema (version)", "marked": "PRAGMA application_id = 7",
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, fileName)
			execute(t, path, sql)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), Options{Folder: folder}); !errors.Is(err, ErrForeign) {
				t.Errorf("%v, want it foreign", err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// TestDamaged: whatever the disk did to the file, it is told, and never taken
// for what was written.
func TestDamaged(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"no database": func([]byte) []byte { return []byte(strings.Repeat("not a database ", 400)) },
		"header":      func(b []byte) []byte { copy(b, "SQLite forma"); return b[:100] },
		"pages":       func(b []byte) []byte { clear(b[4096:]); return b },
		"noise": func(b []byte) []byte {
			for i := 4096; i < len(b); i++ {
				b[i] ^= byte(i * 7)
			}
			return b
		},
		"cut": func(b []byte) []byte { return b[:4096*3] },
	} {
		t.Run(name, func(t *testing.T) {
			folder := changed(t, func(path string) {
				b, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, change(b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			err := useAll(t.Context(), folder)
			damaged, ok := errors.AsType[*DamagedError](err)
			if !ok || damaged.Path != filepath.Join(folder, fileName) || damaged.Mend == "" {
				t.Errorf("%v, want the file to be told damaged", err)
			}
		})
	}
}

// useAll reads and writes until something is wrong.
func useAll(ctx context.Context, folder string) error {
	s, err := Open(ctx, Options{Folder: folder})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	if _, err := snap.Scan(ctx, store.Range{Space: faultSpace}, 100); err != nil {
		return err
	}
	if _, err := s.Records(ctx, "", 100); err != nil {
		return err
	}
	_, err = s.Commit(ctx, mark("use"))
	return err
}

func TestNoFolder(t *testing.T) {
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("a store without a folder was opened")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Folder: file}); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// TestOpenTogether: whoever comes first makes the file, and all can use it.
func TestOpenTogether(t *testing.T) {
	folder := t.TempDir()
	var wg sync.WaitGroup
	var o outcomes
	for i := range 6 {
		wg.Go(func() {
			s, err := Open(t.Context(), Options{Folder: folder, Readers: 1})
			if err != nil {
				t.Error(err)
				return
			}
			id := string(rune('a' + i))
			_, err = s.Commit(t.Context(), mark(id))
			o.add(id, err)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(o.done) != 6 {
		t.Errorf("done %v, failed %v", o.done, o.failed)
	}
	o.hold(t, opened(t, folder))
}

// TestOpenCancelled: an exclusive lock of somebody else is waited for, for as
// long as the caller wants.
func TestOpenCancelled(t *testing.T) {
	folder := changed(t, func(string) {})
	c, err := sqlite3.Open(filepath.Join(folder, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Options{Folder: folder}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the caller's deadline", err)
	}
	if err := errors.Join(c.Exec("ROLLBACK"), c.Close()); err != nil {
		t.Fatal(err)
	}
	opened(t, folder)
}
