package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

func lines(list []capabilities.Effect) []string {
	var out []string
	for _, e := range list {
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s %d %s", e.Verb, e.Object, e.Bytes, e.Detail), " "))
	}
	return out
}

var effectCases = []struct {
	name string
	call func(*guest) error
	want []string
}{
	{"nothing", func(*guest) error { return nil }, nil},
	{"looked at", func(g *guest) error { _, err := g.node("f", true); return err }, nil},
	{"read", func(g *guest) error { _, err := g.cat("l"); return err }, []string{"read /v/f 3"}},
	{"listed", func(g *guest) error { _, err := g.List(g.Root()); return err }, []string{"read /v 0 list"}},
	{"own content read", func(g *guest) error {
		if err := g.write("new", "n", 0); err != nil {
			return err
		}
		_, err := g.cat("new")
		return err
	}, []string{"create /v/new 1"}},
	{"appended", func(g *guest) error { return g.write("f", "new", 3) }, []string{"append /v/f 3"}},
	{"appended by rewriting", func(g *guest) error { return g.write("f", "old and new", -1) }, []string{"append /v/f 8"}},
	{"overwritten", func(g *guest) error { return g.write("f", "new", 0) }, []string{"overwrite /v/f 3"}},
	{"cut", func(g *guest) error { return g.write("f", "ol", -1) }, []string{"overwrite /v/f 2"}},
	{"cut and grown again", func(g *guest) error {
		n, err := g.node("f", true)
		if err != nil {
			return err
		}
		return errors.Join(g.Truncate(n, 1), g.Truncate(n, 3))
	}, []string{"overwrite /v/f 3"}},
	{"rewritten as it was", func(g *guest) error { return g.write("f", "old", -1) }, nil},
	{"replaced by the same", func(g *guest) error {
		if err := g.write("tmp", "old", 0); err != nil {
			return err
		}
		return g.mv("tmp", "f")
	}, nil},
	{"replaced by more", func(g *guest) error {
		if err := g.write("tmp", "old and new", 0); err != nil {
			return err
		}
		return g.mv("tmp", "f")
	}, []string{"append /v/f 8"}},
	{"born and removed", func(g *guest) error {
		if err := g.write("tmp", "x", 0); err != nil {
			return err
		}
		return g.rm("tmp")
	}, nil},
	{"directory made", func(g *guest) error { return g.mkdir("n") }, []string{"create /v/n 0 directory"}},
	{"removed", func(g *guest) error { return g.rm("f") }, []string{"delete /v/f 3"}},
	{"directory removed", func(g *guest) error { return g.rm("e") }, []string{"delete /v/e 0 directory"}},
	{
		"moved", func(g *guest) error { return g.mv("f", "g") },
		[]string{"delete /v/f 3", "create /v/g 3 renamed from /v/f"},
	},
	{"moved there and back", func(g *guest) error {
		if err := g.mv("d", "g"); err != nil {
			return err
		}
		return g.mv("g", "d")
	}, nil},
	{"directory moved", func(g *guest) error { return g.mv("d", "n") }, []string{
		"delete /v/d 0 directory", "delete /v/d/x 1",
		"create /v/n 0 directory renamed from /v/d", "create /v/n/x 1 renamed from /v/d/x",
	}},
	{
		"moved over another", func(g *guest) error { return g.mv("d/x", "f") },
		[]string{"delete /v/d/x 1", "overwrite /v/f 1 renamed from /v/d/x"},
	},
	{"times set", func(g *guest) error { return g.touch("f", "d") }, []string{"overwrite /v/f 0 times", "overwrite /v/d 0 times"}},
	{"times set and written", func(g *guest) error {
		return errors.Join(g.write("f", "new", 0), g.touch("f"))
	}, []string{"overwrite /v/f 3"}},
	{"times set of what was made", func(g *guest) error {
		return errors.Join(g.mkdir("n"), g.write("n/f", "x", 0), g.touch("n", "n/f"))
	}, []string{"create /v/n 0 directory", "create /v/n/f 1"}},
	{"file made a directory", func(g *guest) error {
		if err := g.rm("f"); err != nil {
			return err
		}
		return g.mkdir("f")
	}, []string{"delete /v/f 3", "create /v/f 0 directory"}},
}

func TestEffects(t *testing.T) {
	for _, c := range effectCases {
		t.Run(c.name, func(t *testing.T) {
			h, _ := planted(t, map[string]string{"f": "old", "d/x": "x", "e/": "", "l": "->f"})
			g := overlay(t, h)
			must(t, c.call(g))
			got := lines(g.Effects("/v"))
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("effects %q\nwant %q", got, want)
			}
			change, err := g.Change()
			must(t, err)
			reads := len(want) > 0 && strings.HasPrefix(want[0], "read")
			if change.Empty() != (len(want) == 0 || reads) {
				t.Errorf("steps %+v", change.Steps)
			}
		})
	}
}

// Effects are cut at 1000, and no number of reads hides a change.
func TestEffectsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 1200 {
		must(t, os.WriteFile(filepath.Join(dir, "f"+strconv.Itoa(i)), []byte("x"), 0o644))
	}
	g := overlay(t, open(t, dir))
	for i := range 1200 {
		g.content(t, "f"+strconv.Itoa(i))
	}
	must(t, g.rm("f7"))
	list := g.Effects("/v")
	if len(list) != 1000 || list[999].Verb != capabilities.Delete || list[998].Detail != "and 201 more" {
		t.Errorf("%d effects, at the end %q", len(list), lines(list[max(0, len(list)-2):]))
	}
	for i := range 1200 {
		must(t, g.write("n"+strconv.Itoa(i), "x", 0))
	}
	list = g.Effects("/v")
	if len(list) != 1000 || list[499].Detail == "" || list[999].Detail == "" {
		t.Errorf("%d effects, at the end %q", len(list), lines(list[max(0, len(list)-2):]))
	}
}
