package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alecthomas/kong"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// volumes is a command line with the volume command, on a store in memory.
type volumes struct {
	t      *testing.T
	store  *memstore.Store
	closed int
}

// keptOpen outlives the commands.
type keptOpen struct {
	store.Store
	closed *int
}

func (k keptOpen) Close() error { *k.closed++; return nil }

func (v *volumes) run(line ...string) (stdout string, err error) {
	v.t.Helper()
	var c struct {
		Volume volumeCmd `cmd:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		v.t.Fatal(err)
	}
	command, err := parser.Parse(append([]string{"volume"}, line...))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	a := &app{ctx: v.t.Context(), stdout: &out, stderr: io.Discard}
	open := storeOpener(func(context.Context, *app) (store.Store, error) { return keptOpen{v.store, &v.closed}, nil })
	err = command.Run(a, open)
	return out.String(), err
}

func newVolumes(t *testing.T) *volumes {
	t.Helper()
	return &volumes{t: t, store: memstore.New()}
}

func TestVolumeCommands(t *testing.T) {
	v := newVolumes(t)
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(in, fstest.MapFS{"d/notes.json": {Data: []byte("[]\n"), Mode: 0o644}, "a\x1b": {Mode: 0o600}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		want string // in the output
		bad  string // in the error
	}{
		{line: "ls", want: ""},
		{line: "ls notes/data", bad: "volume notes/data: not found for local"},
		{line: "import data " + in, bad: "name a new one as PACKAGE/NAME"},
		{line: "import Notes/data " + in, bad: "not found"},
		{line: "import notes/data " + filepath.Join(in, "missing"), bad: "missing"},
		{line: "import notes/data " + in + " --principal UP", bad: "not a name for a principal"},
		{line: "import notes/data " + in, want: "volume notes/data: 2 files, 1 folders, 3 bytes imported\n"},
		{line: "import notes/data " + in, bad: "not empty; --replace"},
		{line: "import data " + in + " --replace", want: "volume notes/data: 2 files"},
		{line: "ls", want: "local         notes/data "},
		{line: "ls --json", want: `{"principal":"local","package":"notes","name":"data","bytes":`},
		{line: "ls notes/data", want: `a\x1b` + "\n"},
		{line: "ls data", want: "d/\n"},
		{line: "ls data d", want: "  d/notes.json\n"},
		{line: "ls data --recursive --json", want: `{"path":"d/notes.json","kind":"file","mode":"0644","size":3,"modTime":"`},
		{line: "ls data x", bad: "x: not in the volume"},
		{line: "ls data ../x", bad: "x: not in the volume"},
		{line: "ls data .sandboxd-x", bad: "not a path of a volume"},
		{line: "ls data --principal alice", bad: "not found for alice"},
		{line: "cat data /d/notes.json", want: "[]\n"},
		{line: "cat data d", bad: "d: a folder"},
		{line: "cat data d/notes.json/x", bad: "not in the volume"},
		{line: "export data " + out, want: "volume data: exported to " + out + "\n"},
		{line: "export data " + in, bad: "not empty; name an empty folder"},
		{line: "export none " + out, bad: "not found"},
	} {
		got, err := v.run(strings.Fields(c.line)...)
		switch {
		case c.bad == "" && (err != nil || !strings.Contains(got, c.want)):
			t.Errorf("%s: %q, %v", c.line, got, err)
		case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%s: %q, %v", c.line, got, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(out, "d", "notes.json")); err != nil || string(b) != "[]\n" {
		t.Errorf("exported %q, %v", b, err)
	}
	if v.closed < 10 {
		t.Errorf("the store was closed %d times", v.closed)
	}
}

// A name that several packages have is said with its package.
func TestVolumeAmbiguous(t *testing.T) {
	v := newVolumes(t)
	for _, pkg := range []string{"a", "b"} {
		src := fstest.MapFS{pkg: {Mode: 0o644}}
		if _, err := stored.Import(t.Context(), v.store, stored.SpaceOf("local", pkg, "data"), src, stored.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.run("ls", "data"); err == nil || !strings.Contains(err.Error(), "name it as PACKAGE/data") {
		t.Errorf("%v", err)
	}
	if got, err := v.run("ls", "b/data"); err != nil || !strings.HasSuffix(got, "  b\n") {
		t.Errorf("%q, %v", got, err)
	}
}

// A terminal gets no escape sequences, and no character is cut in two.
func TestVolumeEscaped(t *testing.T) {
	long := strings.Repeat("é", maxShown) + "x" // the bound falls into a character, or the next one does
	for in, want := range map[string]string{
		"":                        "",
		"plain\nlines":            "plain\nlines",
		"\x1b[2Jgone\n":           `\x1b[2Jgone` + "\n",
		long:                      long,
		"x" + long + "\x1b":       "x" + long + `\x1b`,
		strings.Repeat("\xff", 5): strings.Repeat(`\xff`, 5),
	} {
		var out strings.Builder
		err := escaped(&out, func(w io.Writer) error { _, err := io.WriteString(w, in); return err })
		if err != nil || out.String() != want {
			t.Errorf("%.20q: %.40q, %v", in, out.String(), err)
		}
	}
	broken := errors.New("broken")
	if err := escaped(io.Discard, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
