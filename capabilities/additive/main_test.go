package additive

import (
	"context"
	"flag"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

func TestMain(m *testing.M) {
	// More than rapid's 100: rare shapes matter here. The command line can say
	// otherwise.
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	m.Run()
}

// file is one path of a tree in memory.
type file struct {
	kind    volume.Kind
	mode    fs.FileMode // 0: 0644
	content string      // of a link: its target
	err     error       // of opening it
	from    string      // path in the base that was moved here
}

// files is a tree in memory.
type files map[string]file

func text1(content string) file { return file{content: content} }

func (t files) Lstat(name string) (volume.Info, volume.Stamp, error) {
	f, ok := t[name]
	if !ok {
		return volume.Info{}, volume.Stamp{}, capabilities.ENOENT
	}
	i := volume.Info{Kind: f.kind, Mode: f.permissions(), Size: int64(len(f.content))}
	return i, volume.Stamp{Exists: true, Kind: i.Kind, Mode: i.Mode, Size: i.Size}, nil
}

func (f file) permissions() fs.FileMode {
	if f.mode == 0 {
		return 0o644
	}
	return f.mode
}

func (t files) ReadDir(string) ([]volume.Entry, error) { return nil, capabilities.EIO }

func (t files) Readlink(name string) (string, error) { return t[name].content, nil }

func (t files) Open(name string) (volume.Content, error) {
	f, ok := t[name]
	if !ok {
		return nil, capabilities.ENOENT
	}
	return content{strings.NewReader(f.content)}, f.err
}

type content struct{ *strings.Reader }

func (content) Close() error { return nil }

// tree returns a volume at /data that was one tree and would be another.
func tree(old, new files) Tree {
	t := Tree{Path: "/data", Base: old, Result: new}
	paths := maps.Clone(old)
	maps.Copy(paths, new)
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		was, there := old[p]
		is, stays := new[p]
		s := volume.Step{Action: volume.ActPut, Path: p, Mode: is.permissions(), Size: int64(len(is.content)), Base: is.from}
		switch {
		case !stays:
			s = volume.Step{Action: volume.ActRemove, Path: p}
		case there && was == is:
			continue
		case is.kind == volume.Dir:
			s.Action = volume.ActMkdir
		case is.kind == volume.Symlink:
			s.Action = volume.ActLink
		case is.kind == volume.File || is.kind == volume.Special:
		}
		t.Steps = append(t.Steps, s)
	}
	return t
}

func judged(t testing.TB, old, new files, r Rules) *Report {
	t.Helper()
	report, err := Judge(t.Context(), []Tree{tree(old, new)}, r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// verdictOf returns "append", "insert", "overwrite" or the first loss, for one
// file that changes.
func verdictOf(t testing.TB, path, old, new string, r Rules) string {
	t.Helper()
	return summary(judged(t, files{path: text1(old)}, files{path: text1(new)}, r))
}

func summary(r *Report) string {
	if l := r.Loss(); l != nil {
		return l.Object + ": " + l.Why
	}
	var s []string
	for _, c := range r.Changed {
		s = append(s, c.Verb.String())
	}
	return strings.Join(s, " ")
}

func pointers(t testing.TB, list ...string) []Pointer {
	t.Helper()
	var out []Pointer
	for _, s := range list {
		p, err := ParsePointer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

var _ io.ReaderAt = content{}

// bg is a context for where no test's own is at hand.
func bg() context.Context { return context.Background() }
