package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandboxd/sandboxd/capabilities"
)

// acl returns an access control list as the system keeps it: the owner, user 1234,
// the group, the mask, others.
func acl(owner, user, group, mask, other uint16) string {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][2]uint16{{0x01, owner}, {0x02, user}, {0x04, group}, {0x10, mask}, {0x20, other}} {
		b = binary.LittleEndian.AppendUint16(b, e[0])
		b = binary.LittleEndian.AppendUint16(b, e[1])
		id := uint32(0xffffffff)
		if e[0] == 0x02 {
			id = 1234
		}
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return string(b)
}

const (
	accessACL  = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
)

// attribute sets an extended attribute, or skips the test where there are none.
func attribute(t *testing.T, path, name, value string) {
	t.Helper()
	err := unix.Lsetxattr(path, name, []byte(value), 0)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) {
		t.Skipf("%s cannot be set here: %v", name, err)
	}
	must(t, err)
}

// attributesOf returns what is kept of a file, as text.
func attributesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	found, err := readAttributes(f)
	must(t, err)
	m := map[string]string{}
	for k, v := range found {
		if strings.HasPrefix(k, "user.") || strings.HasPrefix(k, "system.") {
			m[k] = string(v)
		}
	}
	return m
}

// What replaces a file has the mode, owner, attributes and access control list of
// that file. What is moved keeps its own, and so does a directory.
func TestAttributes(t *testing.T) {
	list := acl(6, 7, 4, 6, 0)
	for name, c := range map[string]struct {
		call func(*guest) error
		from map[string]string // by path now: path before
	}{
		"written":                      {func(g *guest) error { return g.write("f", "new", 0) }, map[string]string{"f": "f"}},
		"replaced":                     {func(g *guest) error { return errorsOf(g.write("t", "new", 0), g.mv("t", "f")) }, map[string]string{"f": "f"}},
		"made again":                   {func(g *guest) error { return errorsOf(g.rm("f"), g.write("f", "new", 0)) }, map[string]string{"f": "f"}},
		"moved":                        {func(g *guest) error { return g.mv("f", "d/n") }, map[string]string{"d/n": "f"}},
		"moved, written":               {func(g *guest) error { return errorsOf(g.mv("f", "d/n"), g.write("d/n", "x", 1)) }, map[string]string{"d/n": "f"}},
		"moved over":                   {func(g *guest) error { return g.mv("plain", "f") }, map[string]string{"f": "f"}},
		"moved over one that has none": {func(g *guest) error { return g.mv("f", "plain") }, map[string]string{"plain": "plain"}},
		"places changed":               {func(g *guest) error { return errorsOf(g.mv("f", "t"), g.mv("plain", "f"), g.mv("t", "plain")) }, map[string]string{"f": "f", "plain": "plain"}},
		"times set":                    {func(g *guest) error { return g.touch("f") }, map[string]string{"f": "f"}},
		"directory moved":              {func(g *guest) error { return g.mv("d", "m") }, map[string]string{"m": "d", "m/g": "d/g"}},
		"directory moved, another made": {
			func(g *guest) error { return errorsOf(g.mv("d", "m"), g.mkdir("d")) }, map[string]string{"m": "d", "d": "d"},
		},
	} {
		for how, apart := range map[string]func(from, to string) bool{"near": nil, "far": far} {
			t.Run(name+"/"+how, func(t *testing.T) {
				j := &journal{name: "store"}
				h, dir := journaled(t, j, map[string]string{"f": "old", "plain": "p", "d/g": "g"})
				h.disk.apart = apart
				at := func(name string) string { return filepath.Join(dir, name) }
				must(t, os.Chmod(at("d"), 0o775|os.ModeSetgid))
				for _, p := range []string{"f", "d", "d/g"} {
					attribute(t, at(p), "user.note", "of "+p)
					attribute(t, at(p), accessACL, list)
				}
				attribute(t, at("d"), defaultACL, list)
				if os.Geteuid() == 0 {
					must(t, errors.Join(os.Chown(at("f"), 1234, 2345), os.Chown(at("d"), 1234, 2345)))
					must(t, os.Chmod(at("d"), 0o775|os.ModeSetgid))
				}
				type state struct {
					attributes map[string]string
					owner      owner
					mode       os.FileMode
				}
				look := func(path string) state {
					fi, err := os.Stat(at(path))
					must(t, err)
					o, _ := ownerOf(fi)
					return state{attributesOf(t, at(path)), o, fi.Mode()}
				}
				before := map[string]state{}
				for _, p := range []string{"f", "plain", "d", "d/g"} {
					before[p] = look(p)
				}
				must(t, j.commit(t.Context(), h, change(t, h, c.call)))
				for path, from := range c.from {
					got, want := look(path), before[from]
					if !maps.Equal(got.attributes, want.attributes) || got.owner != want.owner || got.mode != want.mode {
						t.Errorf("%s: %q, want %q", path, fmt.Sprint(got), fmt.Sprint(want))
					}
				}
				if left := stages(t, dir); len(left) > 0 {
					t.Errorf("left %q", left)
				}
			})
		}
	}
}

// A file whose attributes cannot be kept is not replaced. What belongs to the old
// content, or to the host, is not asked for.
func TestAttributesRefused(t *testing.T) {
	for name, c := range map[string]struct {
		attribute, value string
		refused          bool
	}{
		"note":                  {"user.note", "x", true},
		"access control list":   {accessACL, acl(6, 7, 4, 6, 0), true},
		"label":                 {"security.label", "x", false},
		"host's own":            {"trusted.note", "x", false},
		"mark of the content":   {"security.ima", "x", false},
		"privileges of content": {"security.capability", "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := planted(t, map[string]string{"f": "old"})
			attribute(t, filepath.Join(dir, "f"), c.attribute, c.value)
			h.disk.fault = func(op, name string) error {
				if op == "attribute" {
					return syscall.ENOTSUP
				}
				return nil
			}
			err := h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) }))
			a, is := errors.AsType[*AttributeError](err)
			if is != c.refused || (err != nil) != c.refused || errors.Is(err, capabilities.EPERM) != c.refused {
				t.Errorf("%v", err)
			}
			if is && (a.Name != c.attribute || !errors.Is(err, syscall.ENOTSUP)) {
				t.Errorf("%v", a)
			}
			want := "-rw-r--r-- new"
			if c.refused {
				want = image(t, dir)["f"]
				if !strings.HasSuffix(want, " old") {
					t.Errorf("left %q", want)
				}
			}
			if got := image(t, dir); len(got) != 1 || got["f"] != want {
				t.Errorf("left %v", got)
			}
		})
	}
}

// What gives a program privileges goes with the content that had them.
func TestPrivilegesGo(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	path := filepath.Join(dir, "f")
	attribute(t, path, "security.capability", "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	must(t, os.Chmod(path, 0o755|os.ModeSetuid))
	must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) })))
	b := make([]byte, 1000)
	n, err := unix.Llistxattr(path, b)
	must(t, err)
	if names := strings.Split(string(b[:n]), "\x00"); slices.Contains(names, "security.capability") {
		t.Errorf("attributes %q", names)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o755 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

// The stage has the default access control list of the root; what replaces a file
// without one has none.
func TestAttributesNotInherited(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old"})
	attribute(t, dir, defaultACL, acl(6, 7, 4, 6, 0))
	must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.write("f", "new", -1) })))
	if got := attributesOf(t, filepath.Join(dir, "f")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// A file that cannot be read can be replaced, if there is nothing to keep.
func TestAttributesUnreadable(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "old"})
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	f, err := root.OpenFile("f", unix.O_PATH|unix.O_NOFOLLOW, 0)
	must(t, err)
	defer f.Close()
	if found, err := readAttributes(f); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	attribute(t, filepath.Join(dir, "f"), "user.note", "x")
	if found, err := readAttributes(f); err != nil || string(found["user.note"]) != "x" {
		t.Errorf("%v, %v", found, err)
	}
}

// A new directory goes on with what is inherited where it is made.
func TestDirectoryInherits(t *testing.T) {
	h, dir := planted(t, map[string]string{"d/": ""})
	must(t, os.Chmod(filepath.Join(dir, "d"), 0o755|os.ModeSetgid))
	must(t, h.Apply(t.Context(), change(t, h, func(g *guest) error { return g.mkdir("d/n") })))
	if fi, err := os.Stat(filepath.Join(dir, "d/n")); err != nil || fi.Mode() != os.ModeDir|os.ModeSetgid|0o755 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
