package tx

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var errLost = errors.New("lost")

// nothingLost refuses a call after which a file is gone, or does not begin with
// what it was.
func nothingLost(_ context.Context, p *Prepared, v View) error {
	for name := range p.Changes {
		if err := kept(v.Base(name), v.Result(name), "."); err != nil {
			return err
		}
	}
	return nil
}

func kept(was, is volume.Base, dir string) error {
	list, err := was.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		path := strings.TrimPrefix(dir+"/"+e.Name, "./")
		if e.Kind == volume.Dir {
			if err := kept(was, is, path); err != nil {
				return err
			}
			continue
		}
		old, err := content(was, path)
		if err != nil {
			return err
		}
		now, err := content(is, path)
		if err != nil || !bytes.HasPrefix(now, old) {
			return errLost
		}
	}
	return nil
}

func content(b volume.Base, path string) ([]byte, error) {
	info, _, err := b.Lstat(path)
	if err != nil {
		return nil, err
	}
	c, err := b.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return io.ReadAll(io.NewSectionReader(c, 0, info.Size))
}

// A judge sees what was there and what would be, and its reading is no effect.
func TestJudgeSeesBothSides(t *testing.T) {
	a, file := folder(t, "a")
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(file), "d"), 0o755))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "d", "g"), []byte("g"), 0o644))
	for what, c := range map[string]struct {
		call func(*volume.Overlay)
		want error
	}{
		"nothing":     {func(*volume.Overlay) {}, nil},
		"appended":    {func(o *volume.Overlay) { write(t, o, "f", "old and new") }, nil},
		"made":        {func(o *volume.Overlay) { write(t, o, "new", "x") }, nil},
		"overwritten": {func(o *volume.Overlay) { write(t, o, "f", "new") }, errLost},
		"below":       {func(o *volume.Overlay) { write(t, o, "d/g", "") }, errLost},
	} {
		x := begin(a, Volume{Name: "tmp", Path: "/tmp"})
		c.call(x.Overlay("a"))
		before := len(x.Effects())
		_, err := x.Prepare(t.Context(), nothingLost, func(_ context.Context, _ *Prepared, v View) error {
			for _, name := range []string{"tmp", "none"} {
				if v.Base(name) != nil || v.Result(name) != nil {
					t.Errorf("%s has a view", name)
				}
			}
			return nil
		})
		if !errors.Is(err, c.want) || (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if after := len(x.Effects()); after != before {
			t.Errorf("%s: %d effects, %d after it was judged", what, before, after)
		}
		must(t, x.Rollback())
	}
}

// No number of other effects hides one from a judge.
func TestJudgeSeesAllEffects(t *testing.T) {
	a, _ := folder(t, "a")
	x := Begin(Parts{Volumes: []Volume{a}}, volume.Options{Budget: &volume.Budget{Bytes: 8 << 20, Files: 5000}})
	o := x.Overlay("a")
	for i := range 3000 {
		p, err := o.Walk(o.Root(), "a"+strconv.Itoa(i), false)
		must(t, err)
		_, err = o.Create(p)
		must(t, err)
	}
	p, err := o.Walk(o.Root(), "f", false)
	must(t, err)
	must(t, o.Remove(p))
	found := 0
	prepared, err := x.Prepare(t.Context(), func(_ context.Context, p *Prepared, _ View) error {
		for _, e := range p.Effects {
			if e.Verb == capabilities.Delete && e.Object == "/a/f" && e.Detail == "" {
				found++
			}
		}
		return nil
	})
	must(t, err)
	if found != 1 || len(prepared.Effects) != 3001 {
		t.Errorf("found %d times among %d", found, len(prepared.Effects))
	}
	if shown := len(x.Effects()); shown > 1000 {
		t.Errorf("%d effects shown", shown)
	}
	must(t, x.Rollback())
}
