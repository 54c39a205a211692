package volume

import (
	"path/filepath"
	"testing"
)

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a/in/": "", "b/": "", "ab/": "", "link": "->a"})
	folder := func(name string) Folder { return open(t, filepath.Join(dir, name)).Folder() }
	a := folder("a")
	for name, want := range map[string]bool{
		"a": true, "a/in": true, ".": true, "link": true, "link/in": true, "b": false, "ab": false,
	} {
		f := folder(name)
		if f.Overlaps(a) != want || a.Overlaps(f) != want {
			t.Errorf("%s overlaps a: %v", name, f.Overlaps(a))
		}
		if same := f.Compare(a) == 0; same != (name == "a" || name == "link") {
			t.Errorf("%s compared with a: %v", name, same)
		}
		if f.Compare(a) != -a.Compare(f) {
			t.Errorf("%s: no order", name)
		}
	}
	if (Folder{}).Overlaps(a) || (Folder{}).Overlaps(Folder{}) {
		t.Error("nowhere overlaps")
	}
}

// What an overlay would leave is read without an effect.
func TestResult(t *testing.T) {
	h, _ := planted(t, map[string]string{"d/f": "old", "l": "->d/f", "gone": "x"})
	g := overlay(t, h)
	must(t, g.write("d/f", "NEW", 0))
	must(t, g.rm("gone"))
	must(t, g.mv("d", "e"))
	r := g.Result()
	info, st, err := r.Lstat("e/f")
	if err != nil || info.Size != 3 || st.Kind != File || !st.Exists {
		t.Errorf("lstat %+v, %+v, %v", info, st, err)
	}
	c, err := r.Open("e/f")
	must(t, err)
	b := make([]byte, 3)
	if _, err := c.ReadAt(b, 0); err != nil || string(b) != "NEW" {
		t.Errorf("content %q, %v", b, err)
	}
	must(t, c.Close())
	if _, err := c.ReadAt(b, 0); err == nil {
		t.Error("read after close")
	}
	list, err := r.ReadDir(".")
	if err != nil || len(list) != 2 || list[0].Name != "e" {
		t.Errorf("list %+v, %v", list, err)
	}
	if target, err := r.Readlink("l"); err != nil || target != "d/f" {
		t.Errorf("link %q, %v", target, err)
	}
	for _, name := range []string{"gone", "d/f", "l/x", "e/f/x"} {
		if _, _, err := r.Lstat(name); !isAbsent(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"e", "l"} {
		if _, err := r.Open(name); err == nil {
			t.Errorf("opened %s", name)
		}
	}
	if reads := g.reads("/v"); len(reads) != 0 {
		t.Errorf("effects %v", reads)
	}
}
