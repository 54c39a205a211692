package additive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var pathCases = []struct {
	name     string
	old, new files
	want     string // as summary has it; empty: additive and no file changed
}{
	{"nothing", files{"f": text1("a")}, files{"f": text1("a")}, ""},
	{"born", files{}, files{"f": text1("\x00")}, ""},
	{"directory made", files{}, files{"d": {kind: volume.Dir}}, ""},
	{"removed", files{"f": text1("a")}, files{}, "/data/f: path was removed"},
	{"renamed", files{"f": text1("a")}, files{"g": {content: "a", from: "f"}}, "/data/f: path was renamed"},
	{"case-only rename", files{"Notes.md": text1("a")}, files{"notes.md": {content: "a", from: "Notes.md"}}, "/data/Notes.md: path was renamed"},
	{
		"renamed over another",
		files{"f": text1("a\n"), "g": text1("b\n")},
		files{"g": {content: "a\nb\n", from: "f"}},
		"/data/f: path was renamed",
	},
	{"renamed and made again", files{"f": text1("a\n")}, files{"f": text1("a\nb\n"), "g": {content: "a\n", from: "f"}}, "append"},
	{"copied", files{"f": text1("a\n")}, files{"f": text1("a\n"), "g": text1("a\n")}, ""},
	{"type changed", files{"f": text1("a")}, files{"f": {kind: volume.Dir}}, "/data/f: type was changed from file to directory"},
	{"directory becomes file", files{"f": {kind: volume.Dir}}, files{"f": text1("")}, "/data/f: type was changed from directory to file"},
	{"link becomes file", files{"f": {kind: volume.Symlink, content: "g"}}, files{"f": text1("g")}, "/data/f: type was changed from link to file"},
	{"link leads elsewhere", files{"l": {kind: volume.Symlink, content: "g"}}, files{"l": {kind: volume.Symlink, content: "h"}}, "/data/l: link leads elsewhere"},
	{"special file", files{"p": {kind: volume.Special}}, files{"p": {kind: volume.Special, content: "x"}}, "/data/p: special file was replaced"},
	{"mode", files{"f": text1("a")}, files{"f": {content: "a", mode: 0o755}}, "/data/f: mode was changed from 0644 to 0755"},
	{"mode of a longer file", files{"f": {content: "a\n", mode: 0o600}}, files{"f": text1("a\nb\n")}, "/data/f: mode was changed from 0600 to 0644"},
	{"folder removed", files{"d": {kind: volume.Dir}, "d/f": text1("a")}, files{}, "/data/d: path was removed"},
	{"several lost: the first by path", files{"b": text1("x"), "a/z": text1("y")}, files{"b": text1("z")}, "/data/a/z: path was removed"},
	{
		"program may grow",
		files{"x": {content: "a\nb\n", mode: 0o755}},
		files{"x": {content: "a\nb\nc\n", mode: 0o755}},
		"append",
	},
	{
		"program with a line between",
		files{"x": {content: "a\nb\n", mode: 0o755}},
		files{"x": {content: "a\nc\nb\n", mode: 0o755}},
		"/data/x: " + whyScript,
	},
	{
		"program of JSON lines",
		files{"x": {content: "{\"a\":1}\n{\"b\":1}\n", mode: 0o744}},
		files{"x": {content: "{\"c\":1}\n{\"a\":1}\n{\"b\":1}\n", mode: 0o744}},
		"/data/x: " + whyScript,
	},
	{
		"JSON that says it is a program",
		files{"x": {content: "[1]", mode: 0o755}},
		files{"x": {content: "[0,1]", mode: 0o755}},
		"insert",
	},
	{
		"content that cannot be read",
		files{"f": {content: "a", err: capabilities.EACCES}},
		files{"f": text1("ab")},
		"/data/f: old content cannot be read",
	},
}

func TestPaths(t *testing.T) {
	for _, c := range pathCases {
		t.Run(c.name, func(t *testing.T) {
			if got := summary(judged(t, c.old, c.new, Rules{})); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTimesDoNotCount and neither do steps on what the base has not.
func TestTimesDoNotCount(t *testing.T) {
	b := files{"f": text1("a"), "d": {kind: volume.Dir}}
	tr := Tree{Path: "/data", Base: b, Result: b, Steps: []volume.Step{
		{Action: volume.ActTimes, Path: "f"},
		{Action: volume.ActTimes, Path: "d"},
		{Action: volume.ActTimes, Path: "."},
		{Action: volume.ActRemove, Path: "never"},
	}}
	r, err := Judge(t.Context(), []Tree{tr}, Rules{})
	if err != nil || r.Loss() != nil || len(r.Changed) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestUnknownStepIsALoss: what the judge does not know it does not pass.
func TestUnknownStepIsALoss(t *testing.T) {
	b := files{"f": text1("a"), "d": {kind: volume.Dir}, "l": {kind: volume.Symlink}}
	for path, action := range map[string]volume.Action{"f": "chown", "d": volume.ActPut, "l": volume.ActPut} {
		tr := Tree{Path: "/data", Base: b, Result: b, Steps: []volume.Step{{Action: action, Path: path, Mode: 0o644}}}
		r, err := Judge(t.Context(), []Tree{tr}, Rules{})
		if err != nil || r.Loss() == nil || r.Loss().Why != whyStep {
			t.Errorf("%s %s: got %+v, %v", action, path, r, err)
		}
	}
}

// TestStepsAndResult: what the commit would do counts, and so does what the
// result shows.
func TestStepsAndResult(t *testing.T) {
	old, new := files{"f": text1("a\n")}, files{"f": text1("a\nb\n")}
	for _, c := range []struct {
		name   string
		change func(*Tree)
		why    string
	}{
		{"mode of the step", func(tr *Tree) { tr.Steps[0].Mode = 0o600 }, whyMode(0o644, 0o600)},
		{"mode of the result", func(tr *Tree) { tr.Result = files{"f": {content: "a\nb\n", mode: 0o600}} }, whyMode(0o644, 0o600)},
		{"removed by the step", func(tr *Tree) { tr.Steps[0].Action = volume.ActRemove }, whyRemoved},
		{"not in the result", func(tr *Tree) { tr.Result = files{} }, whyRemoved},
	} {
		tr := tree(old, new)
		c.change(&tr)
		r, err := Judge(t.Context(), []Tree{tr}, Rules{})
		if err != nil || r.Loss() == nil || r.Loss().Why != c.why {
			t.Errorf("%s: got %+v, %v", c.name, r, err)
		}
	}
}

func TestSeveralVolumes(t *testing.T) {
	lost := tree(files{"f": text1("a"), "g": text1("\x00")}, files{"g": text1("\x00\x00")})
	kept := tree(files{"f": text1("a\n")}, files{"f": text1("a\nb\n")})
	lost.Path, kept.Path = "/b/", "/a"
	trees := []Tree{lost, kept}
	r, err := Judge(t.Context(), trees, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []string
	for _, l := range r.Losses {
		objects = append(objects, l.Object)
	}
	if want := []string{"/b/f", "/b/g"}; !slices.Equal(objects, want) {
		t.Errorf("lost %q, want %q", objects, want)
	}
	verbs := r.Verbs()
	if len(verbs) != 2 || verbs["/a/f"] != capabilities.Append || verbs["/b/g"] != capabilities.Overwrite {
		t.Errorf("verbs %v", verbs)
	}
	if trees[0].Path != "/b/" {
		t.Error("the caller's trees were sorted")
	}
}

func TestLossesAreBounded(t *testing.T) {
	old := files{}
	for i := range maxLosses + 7 {
		old[strings.Repeat("f", i+1)] = text1("a")
	}
	r := judged(t, old, files{}, Rules{})
	if len(r.Losses) != maxLosses || r.More != 7 {
		t.Errorf("%d losses and %d more", len(r.Losses), r.More)
	}
}

// broken is a tree of which something cannot be read.
type broken struct {
	files
	lstat, open, read error
}

func (b broken) Lstat(name string) (volume.Info, volume.Stamp, error) {
	if b.lstat != nil {
		return volume.Info{}, volume.Stamp{}, b.lstat
	}
	return b.files.Lstat(name)
}

func (b broken) Open(name string) (volume.Content, error) {
	if b.open != nil {
		return nil, b.open
	}
	c, err := b.files.Open(name)
	if b.read != nil {
		return faulty{b.read}, nil
	}
	return c, err
}

type faulty struct{ err error }

func (f faulty) ReadAt([]byte, int64) (int, error) { return 0, f.err }
func (faulty) Close() error                        { return nil }

func TestErrors(t *testing.T) {
	fault := errors.New("disk")
	old, new := files{"f": text1(`{"a":1}`)}, files{"f": text1(`{"a":1,"b":2}`)}
	for name, b := range map[string]broken{
		"lstat": {files: old, lstat: fault}, "open": {files: old, open: fault}, "read": {files: old, read: fault},
	} {
		tr := tree(old, new)
		tr.Base = b
		if r, err := Judge(t.Context(), []Tree{tr}, Rules{}); r != nil || !errors.Is(err, fault) {
			t.Errorf("base, %s: got %v, %v", name, r, err)
		}
		tr = tree(old, new)
		b.files = new
		tr.Result = b
		if r, err := Judge(t.Context(), []Tree{tr}, Rules{}); r != nil || !errors.Is(err, fault) {
			t.Errorf("result, %s: got %v, %v", name, r, err)
		}
	}
}

// shrunk says that its files are longer than they are.
type shrunk struct{ files }

func (s shrunk) Lstat(name string) (volume.Info, volume.Stamp, error) {
	i, st, err := s.files.Lstat(name)
	i.Size++
	return i, st, err
}

func TestBaseThatChangesIsAConflict(t *testing.T) {
	tr := tree(files{"f": text1(`[1]`)}, files{"f": text1(`[1,2]`)})
	tr.Base = shrunk{files{"f": text1(`[1]`)}}
	if r, err := Judge(t.Context(), []Tree{tr}, Rules{}); r != nil || !errors.Is(err, volume.ErrConflict) {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := tree(files{"f": text1(`[1]`)}, files{"f": text1(`[1,2]`)})
	if r, err := Judge(ctx, []Tree{tr}, Rules{}); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", r, err)
	}
	c := content{strings.NewReader("[1]")}
	if ok, err := (Rules{}).Same(ctx, "/data/f", c, c, 3, 3); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", ok, err)
	}
}
