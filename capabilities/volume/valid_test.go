package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/enough"
)

// A change that no overlay makes is refused before anything is looked at.
func TestApplyRefusesInvalid(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old", "d/f": "x", "l": "->f"})
	f, d, df, l, x := stamped(t, h, "f"), stamped(t, h, "d"), stamped(t, h, "d/f"), stamped(t, h, "l"), stamped(t, h, "x")
	all := []Guard{f, d, df, l, x}
	put := func(path string) Step { return Step{Action: ActPut, Path: path, Mode: 0o644} }
	remove := func(path string) Step { return Step{Action: ActRemove, Path: path} }
	mkdir := func(path string) Step { return Step{Action: ActMkdir, Path: path} }
	for name, c := range map[string]Change{
		"above the root":          {all, nil, []Step{remove("../x")}},
		"the root":                {all, nil, []Step{remove(".")}},
		"no path":                 {all, nil, []Step{remove("")}},
		"absolute":                {all, nil, []Step{mkdir("/x")}},
		"setuid":                  {all, nil, []Step{{Action: ActMkdir, Path: "x", Mode: os.ModeSetuid | 0o755}}},
		"base outside":            {all, nil, []Step{{Action: ActPut, Path: "x", Base: "../secret", Keep: 1, Size: 1}}},
		"keeps of nothing":        {all, nil, []Step{{Action: ActPut, Path: "x", Keep: 1, Size: 1}}},
		"negative size":           {all, nil, []Step{{Action: ActPut, Path: "x", Size: -1}}},
		"extent beyond the size":  {all, nil, []Step{{Action: ActPut, Path: "x", Size: 1, Extents: []Extent{{Offset: 1, Data: []byte("x")}}}}},
		"unknown action":          {all, nil, []Step{{Action: "chown", Path: "f"}}},
		"link without target":     {all, nil, []Step{{Action: ActLink, Path: "x"}}},
		"link made":               {all, nil, []Step{{Action: ActLink, Path: "x", Target: "../../secret"}}},
		"link copied":             {all, nil, []Step{{Action: ActLink, Path: "x", Base: "l", Target: "f"}}},
		"link in its place":       {all, nil, []Step{{Action: ActLink, Path: "l", Base: "l", Target: "../f"}}},
		"link of a file":          {all, nil, []Step{remove("f"), {Action: ActLink, Path: "x", Base: "f", Target: "f"}}},
		"file of a link":          {all, nil, []Step{{Action: ActPut, Path: "x", Base: "l", Keep: 1, Size: 1}}},
		"no guard":                {nil, nil, []Step{put("x")}},
		"no guard of the removed": {nil, nil, []Step{remove("f")}},
		"no guard of the base":    {[]Guard{x}, nil, []Step{{Action: ActPut, Path: "x", Base: "f", Keep: 1, Size: 1}}},
		"no guard of a directory": {[]Guard{df}, nil, []Step{put("d/f")}},
		"through a link":          {append([]Guard{{Path: "l/f"}}, all...), nil, []Step{put("l/f")}},
		"through a file":          {append([]Guard{{Path: "f/f"}}, all...), nil, []Step{put("f/f")}},
		"removes what is not":     {all, nil, []Step{remove("x")}},
		"into what it removes":    {all, nil, []Step{remove("d/f"), remove("d"), put("d/f")}},
		"file over a directory":   {all, nil, []Step{put("d")}},
		"directory made again":    {all, nil, []Step{mkdir("d")}},
		"put twice":               {all, nil, []Step{put("x"), put("x")}},
		"directory and file":      {all, nil, []Step{mkdir("x"), put("x")}},
		"removed twice":           {all, nil, []Step{remove("f"), remove("f")}},
		"times of the removed":    {all, nil, []Step{remove("f"), {Action: ActTimes, Path: "f"}}},
		"times of the new":        {all, nil, []Step{put("f"), {Action: ActTimes, Path: "f"}}},
		"one base for two":        {all, nil, []Step{remove("f"), {Action: ActPut, Path: "l", Base: "f"}, {Action: ActPut, Path: "x", Base: "f"}}},
		"out of order":            {all, nil, []Step{put("x"), remove("f")}},
		"parent first":            {all, nil, []Step{remove("d"), remove("d/f")}},
		"two guards":              {append([]Guard{f}, all...), nil, nil},
		"guard of the host's":     {[]Guard{{Path: ".sandboxd-x/f"}}, nil, nil},
		"two listings":            {nil, []Listing{{Path: "d"}, {Path: "d"}}, nil},
		"listing outside":         {nil, []Listing{{Path: ".."}}, nil},
	} {
		for what, err := range map[string]error{"apply": h.Apply(t.Context(), &c), "check": h.Check(t.Context(), &c)} {
			if !errors.Is(err, capabilities.EINVAL) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
	if got := image(t, dir); len(got) != 4 {
		t.Errorf("left: %v", got)
	}
}

// A link that is moved is shown with the target that it has.
func TestApplyRefusesOtherTarget(t *testing.T) {
	h, dir := planted(t, map[string]string{"l": "->f"})
	before := image(t, dir)
	c := &Change{Guards: []Guard{stamped(t, h, "l"), stamped(t, h, "x")}, Steps: []Step{
		{Action: ActRemove, Path: "l"}, {Action: ActLink, Path: "x", Base: "l", Target: "harmless"},
	}}
	if err := h.Apply(t.Context(), c); !errors.Is(err, capabilities.EINVAL) {
		t.Errorf("apply: %v", err)
	}
	sameImage(t, image(t, dir), before)
}

var (
	hostilePaths = rapid.SampledFrom([]string{
		"f", "d", "d/f", "e", "new", "new/f", "new/n", "out", "out/secret", "up", "up/secret", "in", "in/f", "l", "d/l", ".",
		"..", "../secret", "d/../../secret", "/etc", "", ".sandboxd-x", ".sandboxd-x/f",
	})
	hostileTargets = rapid.SampledFrom([]string{"", "f", "../secret", "/etc/passwd", "..", "d"})
	hostileModes   = rapid.SampledFrom([]os.FileMode{0, 0o644, 0o755, os.ModeSymlink | 0o777, os.ModeSetuid | 0o755})
	hostileActions = rapid.SampledFrom([]Action{ActRemove, ActMkdir, ActPut, ActLink, ActTimes, "chmod"})
)

// likelySteps are steps that can be done, in some order.
var likelySteps = rapid.SampledFrom([]Step{
	{Action: ActRemove, Path: "f"},
	{Action: ActRemove, Path: "e"},
	{Action: ActRemove, Path: "l"},
	{Action: ActRemove, Path: "up"},
	{Action: ActRemove, Path: "d/l"},
	{Action: ActMkdir, Path: "new", Mode: 0o755},
	{Action: ActPut, Path: "f", Mode: 0o644, Size: 2, Extents: []Extent{{Data: []byte("x")}}},
	{Action: ActPut, Path: "d/f", Mode: 0o644, Base: "d/f", Keep: 1, Size: 4},
	{Action: ActPut, Path: "new/f", Mode: 0o644, Base: "f", Keep: 1, Size: 1},
	{Action: ActLink, Path: "new/l", Base: "l", Target: "f"},
	{Action: ActLink, Path: "d/l", Base: "up", Target: ".."},
	{Action: ActTimes, Path: "d"},
})

func hostileStep(rt *rapid.T) Step {
	if rapid.IntRange(0, 3).Draw(rt, "likely") > 0 {
		return likelySteps.Draw(rt, "step")
	}
	s := Step{
		Action: hostileActions.Draw(rt, "action"), Path: hostilePaths.Draw(rt, "path"), Mode: hostileModes.Draw(rt, "mode"),
	}
	if rapid.Bool().Draw(rt, "based") {
		s.Base = hostilePaths.Draw(rt, "base")
		s.Keep = rapid.Int64Range(0, 3).Draw(rt, "keep")
	}
	s.Size = rapid.Int64Range(s.Keep, 4).Draw(rt, "size")
	s.Target = hostileTargets.Draw(rt, "target")
	return s
}

// hostileChange makes a change whose guards mostly hold.
func hostileChange(rt *rapid.T, h *HostDir) *Change {
	c := &Change{}
	seen := map[string]bool{}
	guard := func(path string) {
		if path == "" || seen[path] || rapid.IntRange(0, 19).Draw(rt, "left out") == 19 {
			return
		}
		seen[path] = true
		g := Guard{Path: path}
		if _, st, err := h.Lstat(path); err == nil {
			g.Stamp = st
		}
		c.Guards = append(c.Guards, g)
	}
	for range rapid.IntRange(1, 5).Draw(rt, "steps") {
		s := hostileStep(rt)
		c.Steps = append(c.Steps, s)
		for _, p := range []string{s.Path, s.Base} {
			for i := range p {
				if p[i] == '/' {
					guard(p[:i])
				}
			}
			guard(p)
		}
	}
	if rapid.IntRange(0, 9).Draw(rt, "sorted") > 0 {
		slices.SortFunc(c.Steps, func(a, b Step) int {
			if a.Path == b.Path && a.Action == b.Action {
				return 0
			}
			if ordered(a, b) {
				return -1
			}
			return 1
		})
	}
	return c
}

// links returns the targets of all links of a folder, sorted.
func links(image map[string]string) []string {
	var list []string
	for _, content := range image {
		if target, ok := strings.CutPrefix(content, "link "); ok {
			list = append(list, target)
		}
	}
	slices.Sort(list)
	return list
}

// TestHostileChanges applies changes that somebody else made up: nothing
// outside the folder is touched, no link is made, and what fails changes
// nothing.
func TestHostileChanges(t *testing.T) {
	scratch := quickDir(t)
	applied := 0
	enough.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(scratch, "run")
		must(t, err)
		defer os.RemoveAll(top)
		plant(t, top, map[string]string{
			"secret": "secret", "v/f": "f", "v/d/f": "df", "v/d/l": "->f", "v/e/": "", "v/l": "->f",
			"v/out": "->" + top, "v/up": "->..", "v/in": "->d", "v/.sandboxd-x/f": "stage",
		})
		dir := filepath.Join(top, "v")
		h, err := OpenDir(dir)
		must(t, err)
		defer h.Close()
		h.swept = true // the stage stays
		before := image(t, top)
		b, err := json.Marshal(hostileChange(rt, h))
		must(t, err)
		var c Change
		must(t, json.Unmarshal(b, &c))
		err = h.Apply(t.Context(), &c)
		after := image(t, top)
		if err == nil {
			applied++
		} else if !equal(after, before) {
			rt.Fatalf("failed (%v) and changed the folder: %s", err, b)
		}
		had := links(before)
		for _, target := range links(after) {
			i := slices.Index(had, target)
			if i < 0 {
				rt.Fatalf("made a link to %q: %s", target, b)
			}
			had = slices.Delete(had, i, i+1)
		}
		for path, content := range before {
			if (!strings.HasPrefix(path, "v/") || strings.HasPrefix(path, "v/.sandboxd-")) && path != "v" && after[path] != content {
				rt.Fatalf("%s changed: %s", path, b)
			}
		}
		for path := range after {
			if _, ok := before[path]; !ok && !strings.HasPrefix(path, "v/") {
				rt.Fatalf("%s made: %s", path, b)
			}
		}
	}, func() string {
		if applied < 5 {
			return fmt.Sprintf("%d changes were applied", applied)
		}
		return ""
	})
}

// FuzzApply applies whatever a decoder lets through.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"guards":[{"path":"x","stamp":{"exists":false}}],"steps":[{"action":"put","path":"x","size":3}]}`))
	f.Add([]byte(`{"guards":[{"path":"x","stamp":{"exists":false}}],"steps":[{"action":"link","path":"x","target":"/"}]}`))
	f.Add([]byte(`{"guards":[],"steps":[{"action":"remove","path":"../secret"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Change
		if json.Unmarshal(b, &c) != nil {
			return
		}
		for _, s := range c.Steps {
			if s.Size > 1<<20 {
				return
			}
		}
		top := t.TempDir()
		plant(t, top, map[string]string{"secret": "secret", "v/f": "f"})
		err := open(t, filepath.Join(top, "v")).Apply(t.Context(), &c)
		after := image(t, top)
		if after["secret"] != "-rw-r--r-- secret" || len(links(after)) > 0 {
			t.Errorf("%v, left %v", err, after)
		}
		for path := range after {
			if path != "secret" && path != "v" && !strings.HasPrefix(path, "v/") {
				t.Errorf("%s made, %v", path, err)
			}
		}
	})
}
