package volume_test

import (
	"errors"
	"io"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func TestFixed(t *testing.T) {
	b := volume.Fixed(map[string][]byte{"z": []byte("zed"), "a/b/c": []byte("see"), "a/d": {}})
	for dir, want := range map[string]string{".": "a/ z ", "a": "b/ d ", "a/b": "c "} {
		list, err := b.ReadDir(dir)
		got := ""
		for _, e := range list {
			i, _, err := b.Lstat(dir + "/" + e.Name)
			if dir == "." {
				i, _, err = b.Lstat(e.Name)
			}
			if err != nil || i.Kind != e.Kind || i.Inode != e.Inode {
				t.Errorf("%s of %s: %+v, listed %+v, %v", e.Name, dir, i, e, err)
			}
			if got += e.Name; e.Kind == volume.Dir {
				got += "/"
			}
			got += " "
		}
		if err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", dir, got, err, want)
		}
	}
	c, err := b.Open("a/b/c")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, err := io.ReadAll(io.NewSectionReader(c, 0, 10)); string(text) != "see" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if i, s, err := b.Lstat("z"); i.Size != 3 || s.Size != 3 || !s.Exists || i.Kind != volume.File || err != nil {
		t.Errorf("%+v %+v %v", i, s, err)
	}
	for _, name := range []string{"a/b", "x", "z/y"} {
		if c, err := b.Open(name); !errors.Is(err, capabilities.ENOENT) {
			t.Errorf("open %s: %v %v", name, c, err)
		}
	}
	if _, err := b.ReadDir("z"); !errors.Is(err, capabilities.ENOTDIR) {
		t.Error(err)
	}
	if _, err := b.Readlink("z"); !errors.Is(err, capabilities.EINVAL) {
		t.Error(err)
	}
}
