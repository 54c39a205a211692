package filetools

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

func init() { Register() }

// reference is what the public server answered, see testdata/record.mjs.
type reference struct {
	Files, Bytes, Links map[string]string
	Calls               []struct {
		Tool      string
		Arguments json.RawMessage
		Text      string
		IsError   bool
		Left      *string // by a byte a character
	}
}

func readReference(t *testing.T) *reference {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Calls) < 400 {
		t.Fatalf("%d calls", len(r.Calls))
	}
	return &r
}

// lay makes the volume in a folder of which links may leave it.
func (r *reference) lay(t *testing.T) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outside"), []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	move(t, filepath.Join(dir, "data"))
	for name, text := range r.Bytes {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Files[name] = string(b)
	}
	for name, text := range r.Files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range r.Links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
}

// move puts the volume elsewhere for a test.
func move(t *testing.T, dir string) {
	t.Helper()
	old := root
	t.Cleanup(func() { root = old })
	root = dir
}

// Every answer, error and file is that of the public server.
func TestAsReference(t *testing.T) {
	r := readReference(t)
	r.lay(t)
	for i, c := range r.Calls {
		arguments := strings.ReplaceAll(string(c.Arguments), "@ROOT@", root)
		got := guesttest.Call(t, c.Tool, arguments)
		want := strings.NewReplacer("@ROOT@", root, "@OUT@", filepath.Dir(root)).Replace(c.Text)
		if got.Text != want || got.IsError != c.IsError {
			t.Errorf("call %d: %s %s:\ngot  %q, error %t\nwant %q, error %t", i, c.Tool, arguments, got.Text, got.IsError, want, c.IsError)
		}
		if !c.IsError {
			structured, err := json.Marshal(map[string]string{"content": want})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Structured) != string(structured) {
				t.Errorf("call %d: structured %s, want %s", i, got.Structured, structured)
			}
		}
		if c.Left == nil {
			continue
		}
		var in editInput
		if err := json.Unmarshal([]byte(arguments), &in); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadFile(filepath.Join(root, in.Path))
		if err != nil || !slices.Equal([]rune(*c.Left), latin1(left)) {
			t.Errorf("call %d: %s %s: left %q, %v; want %q", i, c.Tool, arguments, left, err, *c.Left)
		}
	}
}

func latin1(b []byte) []rune {
	rs := make([]rune, len(b))
	for i := range b {
		rs[i] = rune(b[i])
	}
	return rs
}
