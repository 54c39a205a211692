package main

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// A store that cannot be opened is one line that says where and why; nothing runs.
func TestStoreDoesNotOpen(t *testing.T) {
	pkg := newPackage(t, guest(create(), say(1)))
	closed := func(t *testing.T) string {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		return l.Addr().String()
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, s *shell) (config string)
		want  []string
	}{
		"newer schema": {func(t *testing.T, s *shell) string {
			if code, _, diag := s.run("call", "-p", pkg, "save"); code != 0 {
				t.Fatal(diag)
			}
			db, err := sqlite3.Open(filepath.Join(s.state, "store.db"))
			must(t, err)
			must(t, db.Exec("UPDATE schema SET version = 99"))
			must(t, db.Close())
			return ""
		}, []string{"store.db", "schema 99 is newer", "newer one"}},
		"state is a file": {func(t *testing.T, s *shell) string {
			must(t, os.WriteFile(s.state, nil, 0o600))
			return ""
		}, []string{"state"}},
		"blobs is a file": {func(t *testing.T, s *shell) string {
			must(t, os.MkdirAll(s.state, 0o700))
			must(t, os.WriteFile(filepath.Join(s.state, "blobs"), nil, 0o600))
			return ""
		}, []string{"store.db", "blobs"}},
		"another database": {func(t *testing.T, s *shell) string {
			must(t, os.MkdirAll(s.state, 0o700))
			must(t, os.WriteFile(filepath.Join(s.state, "store.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
			return ""
		}, []string{"store.db", "damaged"}},
		"no PostgreSQL": {func(t *testing.T, s *shell) string {
			file := filepath.Join(t.TempDir(), "sandboxd.yaml")
			must(t, os.WriteFile(file, fmt.Appendf(nil, "store: postgres://me:verysecret@%s/db\n", closed(t)), 0o600))
			return file
		}, []string{"store: postgres://me@127.0.0.1", "no server answers"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			var global []string
			if config := c.spoil(t, s); config != "" {
				global = []string{"--config", config}
			}
			for _, line := range [][]string{{"call", "-p", pkg, "save"}, {"serve", "--http", "127.0.0.1:0", pkg}, {"undo", "X"}, {"volume", "ls"}} {
				code, out, diag := s.run(append(global, line...)...)
				if code != exitError || out != "" || strings.Count(diag, "\n") != 1 || strings.Contains(diag, "verysecret") {
					t.Errorf("%s: status %d, %q, %q", line[0], code, out, diag)
				}
				for _, part := range c.want {
					if !strings.Contains(diag, part) {
						t.Errorf("%s: %q is not in %q", line[0], part, diag)
					}
				}
			}
		})
	}
}

// Nobody but its owner can read what is in the state folder.
func TestStateIsPrivate(t *testing.T) {
	s := newShell(t)
	if code, _, diag := s.run("call", "-p", newPackage(t, guest(create(), say(1))), "save"); code != 0 {
		t.Fatal(diag)
	}
	n := 0
	must(t, filepath.WalkDir(s.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		return err
	}))
	if n < 4 {
		t.Errorf("%d files: the state is elsewhere", n)
	}
	must(t, os.Chmod(s.state, 0o777))
	if _, _, diag := s.run("call", "-p", newPackageOnly(t), "look"); !strings.Contains(diag, "state folder can be written by others") {
		t.Errorf("nothing is said of a state folder that others can write: %q", diag)
	}
}

// Where machines share the store, a folder of one of them is a mistake of the
// configuration, with its place and what to do.
func TestSharedStoreAndFolder(t *testing.T) {
	dir, pkg := t.TempDir(), newPackageOnly(t)
	file := filepath.Join(dir, "sandboxd.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "store: postgres://me:verysecret@db.invalid/db\npackages:\n  - source: %s\n    volumes: {data: {folder: %s}}\n", pkg, dir), 0o600))
	s := newShell(t)
	for _, line := range [][]string{{"config", "check", file}, {"--config", file, "call", "-p", pkg, "save"}} {
		code, out, diag := s.run(line...)
		if code != exitError || out != "" || strings.Contains(diag, "verysecret") || strings.Count(diag, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q", line, code, out, diag)
		}
		for _, part := range []string{file + ":4:", "packages[0].volumes.data", dir, "PostgreSQL", "volume import"} {
			if !strings.Contains(diag, part) {
				t.Errorf("%q: %q is not in %q", line, part, diag)
			}
		}
	}
	must(t, os.WriteFile(file, fmt.Appendf(nil, "store: postgres://me:verysecret@db.invalid/db\npackages: [{source: %s}]\n", pkg), 0o600))
	if code, out, diag := s.run("config", "check", file); code != 0 || strings.Contains(out+diag, "verysecret") {
		t.Errorf("status %d, %q, %q", code, out, diag)
	}
}

// The backup of docs/operate.md, made while a daemon runs, is a state that works.
func TestBackup(t *testing.T) {
	s, pkg := newShell(t), newPackageOnly(t)
	if code, _, diag := s.run("call", "-p", pkg, "save"); code != 0 {
		t.Fatal(diag)
	}
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "large.txt"), []byte(strings.Repeat("large ", 100_000)), 0o600))
	if code, _, diag := s.run("volume", "import", "demo/data", folder, "--replace"); code != 0 {
		t.Fatal(diag)
	}
	_, stop := s.daemon(pkg)
	restored := newShell(t)
	must(t, os.MkdirAll(restored.state, 0o700))
	db, err := sqlite3.OpenFlags(filepath.Join(s.state, "store.db"), sqlite3.OPEN_READONLY)
	must(t, err)
	must(t, db.Exec("VACUUM INTO '"+filepath.Join(restored.state, "store.db")+"'"))
	must(t, db.Close())
	for _, name := range []string{"blobs", "trust"} {
		must(t, os.CopyFS(filepath.Join(restored.state, name), os.DirFS(filepath.Join(s.state, name))))
	}
	stop()
	if code, out, diag := restored.run("volume", "cat", "demo/data", "large.txt"); code != 0 || len(out) != 600_000 {
		t.Errorf("status %d, %d bytes, %q", code, len(out), diag)
	}
	if code, _, diag := restored.run("call", "-p", pkg, "save"); code != 0 {
		t.Errorf("status %d, %q", code, diag)
	}
}
