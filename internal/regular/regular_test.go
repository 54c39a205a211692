package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func folder(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// lay makes a folder with d/f of four bytes and links to it and out of it.
func lay(t *testing.T) *os.Root {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "d"), 0o700),
		os.WriteFile(filepath.Join(dir, "d", "f"), []byte("text"), 0o640),
		os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600),
		os.Symlink("d", filepath.Join(dir, "to-d")),
		os.Symlink(filepath.Join("d", "f"), filepath.Join(dir, "to-f")),
		os.Symlink(outside, filepath.Join(dir, "out")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return folder(t, dir)
}

func TestRead(t *testing.T) {
	root := lay(t)
	anyError := errors.New("any")
	for name, want := range map[string]struct{ follow, noLink error }{
		"d/f":         {nil, nil},
		"./d/../d/f":  {nil, nil},
		"to-f":        {nil, ErrLink},
		"to-d/f":      {nil, ErrLink},
		"d":           {ErrIrregular, ErrLink},
		"out/f":       {anyError, ErrLink},
		"d/none":      {fs.ErrNotExist, fs.ErrNotExist},
		"none/f":      {fs.ErrNotExist, fs.ErrNotExist},
		"../x/f":      {anyError, fs.ErrInvalid},
		"d/f/further": {anyError, ErrLink},
	} {
		name = filepath.FromSlash(name)
		b, err := Read(root, name, 4)
		check(t, "Read "+name, b, err, want.follow, anyError)
		b, info, err := ReadNoLink(root, name, 4)
		check(t, "ReadNoLink "+name, b, err, want.noLink, anyError)
		if err == nil && info.Size() != 4 {
			t.Errorf("%s: info of %d bytes", name, info.Size())
		}
	}
	if _, err := Read(root, filepath.Join("d", "f"), 3); !errors.Is(err, ErrTooLarge) || err.Error() != "larger than 3 bytes" {
		t.Errorf("3 of 4 bytes: %v", err)
	}
	if err := TooLarge(5 << 20); err.Error() != "larger than 5 MiB" {
		t.Error(err)
	}
}

func check(t *testing.T, name string, b []byte, err, want, anyError error) {
	t.Helper()
	switch {
	case want == nil && (err != nil || string(b) != "text"):
		t.Errorf("%s: %q, %v", name, b, err)
	case want != nil && (err == nil || b != nil):
		t.Errorf("%s: %q, %v", name, b, err)
	case want != nil && want != anyError && !errors.Is(err, want):
		t.Errorf("%s: %v, want %v", name, err, want)
	}
}

func TestSubfolder(t *testing.T) {
	root := lay(t)
	for name, want := range map[string]error{
		".": nil, "d": nil, "./d/": nil, "to-d": ErrLink, "out": ErrLink, "d/f": ErrLink, "none": fs.ErrNotExist, "..": fs.ErrInvalid,
	} {
		sub, err := Subfolder(root, filepath.FromSlash(name))
		if !errors.Is(err, want) || (sub == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if sub != nil {
			sub.Close()
		}
	}
	if _, err := Folder(filepath.Join(root.Name(), "d", "f")); err == nil {
		t.Error("a file was opened as a folder")
	}
}

// TestNoEnd: what is endless, or grows while it is read, is cut at the bound.
func TestNoEnd(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no endless file here")
	}
	root := folder(t, "/dev")
	if _, err := Read(root, "zero", 1); !errors.Is(err, ErrIrregular) {
		t.Error(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("x", 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(f, before, 4); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
