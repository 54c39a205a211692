package files_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Nothing in the files of a package can be changed, and trying breaks no claim:
// an interpreter tries to keep compiled code beside a script.
func TestFixedCannotBeChanged(t *testing.T) {
	ledger := capabilities.NewLedger(capabilities.Grant{Claim: capabilities.Effective{ReadOnly: true}}, capabilities.Notify{})
	base := volume.Fixed(map[string][]byte{"main.py": []byte("print(1)"), "lib/x.py": nil})
	v := files.Fixed("/package", volume.New(base, volume.Options{}), ledger)
	root := v.Root()
	f, err := root.Open("main.py", files.Intent{Read: true})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if n, _ := f.ReadAt(b, 0); string(b[:n]) != "print(1)" {
		t.Errorf("read %q", b[:n])
	}
	opened := func(in files.Intent, path string) error {
		_, err := root.Open(path, in)
		return err
	}
	for what, err := range map[string]error{
		"create":     opened(files.Intent{Write: true, Create: true}, "new"),
		"write":      opened(files.Intent{Write: true}, "main.py"),
		"read-write": opened(files.Intent{Read: true, Write: true}, "main.py"),
		"truncate":   opened(files.Intent{Read: true, Truncate: true}, "main.py"),
		"mkdir":      root.Mkdir("__pycache__"),
		"unlink":     root.Unlink("main.py"),
		"rename":     root.Rename("main.py", root, "other.py"),
		"size":       f.SetSize(0),
		"times":      f.SetTimes(files.Times{Modify: time.Unix(1, 0)}),
	} {
		if !errors.Is(err, capabilities.EROFS) && !errors.Is(err, capabilities.EINVAL) && !errors.Is(err, capabilities.EBADF) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if i, err := f.Stat(); err != nil || i.Size != 8 || !i.ModTime.Equal(time.Unix(0, 0)) {
		t.Errorf("%+v %v", i, err)
	}
	if vs, ds := ledger.Violations(), ledger.Denials(); len(vs) > 0 || len(ds) > 0 {
		t.Errorf("violations %v, denials %v", vs, ds)
	}
}
