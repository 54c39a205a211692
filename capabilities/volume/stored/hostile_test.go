package stored

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/enough"
)

var (
	hostilePaths   = rapid.SampledFrom([]string{"f", "d", "d/f", "e", "e/x", "new", "new/f", "f/x", "x", ".", "..", "", ".sandboxd-x"})
	hostileActions = rapid.SampledFrom([]volume.Action{
		volume.ActRemove, volume.ActRemove, volume.ActMkdir, volume.ActPut, volume.ActPut, volume.ActTimes, volume.ActLink,
	})
	phase = map[volume.Action]int{volume.ActMkdir: 1, volume.ActPut: 2, volume.ActLink: 2, volume.ActTimes: 3}
)

// hostileChange makes a change that somebody else made up. Its guards mostly say
// what is there.
func hostileChange(rt *rapid.T, tree *Tree) *volume.Change {
	c := &volume.Change{}
	guarded := map[string]bool{}
	guard := func(path string) {
		if path != "" && !guarded[path] && rapid.IntRange(0, 29).Draw(rt, "left out") > 0 {
			guarded[path] = true
			c.Guards = append(c.Guards, stamped(tree, path))
		}
	}
	for range rapid.IntRange(1, 5).Draw(rt, "steps") {
		s := volume.Step{Action: hostileActions.Draw(rt, "action"), Path: hostilePaths.Draw(rt, "path"), Mode: 0o644, ModTime: at()}
		if s.Action == volume.ActPut {
			if rapid.Bool().Draw(rt, "based") {
				s.Base = hostilePaths.Draw(rt, "base")
				s.Keep = rapid.Int64Range(0, 3).Draw(rt, "keep")
			}
			s.Size = rapid.Int64Range(s.Keep, chunkSize).Draw(rt, "size")
		}
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
	slices.SortFunc(c.Steps, func(a, b volume.Step) int {
		if d := phase[a.Action] - phase[b.Action]; d != 0 {
			return d
		}
		if a.Action == volume.ActRemove || a.Action == volume.ActTimes {
			return strings.Compare(b.Path, a.Path)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return c
}

// coherent fails when there is anything that a path does not lead to, or that is
// below no directory.
func coherent(t tester, s *counted) {
	t.Helper()
	for path, x := range image(t, now(t, s)) {
		if !volume.ValidPath(path) || x.Mode&^fs.ModePerm != 0 || (x.Kind != volume.File && x.Kind != volume.Dir) {
			t.Fatalf("%q: %+v", path, x.Info)
		}
	}
	orphans(t, s)
}

// TestHostileChanges commits changes that no overlay has made: whatever passes
// leaves a tree.
func TestHostileChanges(t *testing.T) {
	done := 0
	enough.Check(t, func(rt *rapid.T) {
		s := planted(rt, map[string]string{"f": "old", "d/f": strings.Repeat("x", chunkSize), "e/": ""})
		for range 10 {
			tree := now(rt, s)
			before := image(rt, tree)
			if err := apply(rt.Context(), s, tree, decoded(rt, hostileChange(rt, tree))); err == nil {
				done++
			} else if d := different(before, image(rt, now(rt, s))); d != "" {
				rt.Fatalf("failed (%v) and changed the volume: %s", err, d)
			}
			coherent(rt, s)
		}
	}, func() string {
		if done < 5 {
			return fmt.Sprintf("%d changes were committed", done)
		}
		return ""
	})
}

// FuzzWrites commits whatever a decoder lets through.
func FuzzWrites(f *testing.F) {
	f.Add([]byte(`{"guards":[{"path":"x","stamp":{"exists":false}}],"steps":[{"action":"put","path":"x","size":3}]}`))
	f.Add([]byte(`{"guards":[{"path":"e","stamp":{"exists":true,"kind":1,"mode":493,"version":1}}],"steps":[{"action":"remove","path":"e"}]}`))
	f.Add([]byte(`{"guards":[],"steps":[{"action":"remove","path":"../secret"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c volume.Change
		if json.Unmarshal(b, &c) != nil {
			return
		}
		for _, s := range c.Steps {
			if s.Size > 1<<30 {
				return
			}
		}
		s := planted(t, map[string]string{"f": "old", "e/": ""})
		guards, ranges, writes, err := now(t, s).Writes(t.Context(), &c)
		if err != nil && len(guards)+len(ranges)+len(writes) > 0 {
			t.Errorf("%v, and writes", err)
		}
		if apply(t.Context(), s, now(t, s), &c) == nil {
			for _, st := range c.Steps {
				if st.Size > 1<<22 {
					return // too large to look at
				}
			}
			coherent(t, s)
		}
	})
}
