package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// coarseInfo is a file on a file system that counts times in steps.
type coarseInfo struct {
	fs.FileInfo
	stat syscall.Stat_t
	step time.Duration
}

// coarsely shows times in steps. What was changed before since was changed ten
// seconds earlier.
func coarsely(step time.Duration, since time.Time) func(fs.FileInfo) fs.FileInfo {
	return func(fi fs.FileInfo) fs.FileInfo {
		st := *fi.Sys().(*syscall.Stat_t)
		at := time.Unix(st.Ctim.Unix())
		if at.Before(since) {
			at = at.Add(-10 * time.Second)
		}
		st.Ctim = syscall.NsecToTimespec(at.Truncate(step).UnixNano())
		return coarseInfo{fi, st, step}
	}
}

func (c coarseInfo) Sys() any           { return &c.stat }
func (c coarseInfo) ModTime() time.Time { return c.FileInfo.ModTime().Truncate(c.step) }

// What somebody changes in place, with the same size, and with the old times put
// back, is seen: by the time of the status change, which nobody can put back, or by
// the content of a file that was changed just before it was looked at. So it is
// for calls that only read.
func TestConflictTimesPutBack(t *testing.T) {
	for name, step := range map[string]time.Duration{"fine": 1, "seconds": time.Second, "two seconds": 2 * time.Second} {
		for _, age := range []string{"just changed", "old"} {
			for what, call := range map[string]func(*guest) error{
				"looked at":             func(g *guest) error { _, err := g.node("f", true); return err },
				"read":                  func(g *guest) error { _, err := g.cat("f"); return err },
				"read, another written": func(g *guest) error { _, err := g.cat("f"); return errors.Join(err, g.write("n", "x", 0)) },
				"written":               func(g *guest) error { return g.write("f", "new", 0) },
			} {
				t.Run(name+"/"+age+"/"+what, func(t *testing.T) {
					j := &journal{name: "store"}
					h, dir := journaled(t, j, map[string]string{"f": "old"})
					since := time.Time{}
					if age == "old" {
						settled()
						since = time.Now().Add(-tick / 2)
					}
					h.disk.see = coarsely(step, since)
					c := change(t, h, call)
					early := slices.ContainsFunc(c.Guards, func(g Guard) bool { return g.Stamp.Digest != "" })
					if age == "old" && early {
						t.Error("a digest of an old file")
					}
					if age == "just changed" && step > 1 && !early {
						t.Error("no digest of a file that was just changed")
					}
					must(t, h.Check(t.Context(), c))
					must(t, forge("f", "OLD")(dir))
					for how, err := range map[string]error{
						"check": h.Check(t.Context(), c), "apply": h.Apply(t.Context(), c), "commit": j.commit(t.Context(), h, c),
					} {
						if !errors.Is(err, ErrConflict) {
							t.Errorf("%s: %v", how, err)
						}
					}
					if b, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(b) != "OLD" || j.left() != 0 {
						t.Errorf("left %q, %v", b, err)
					}
				})
			}
		}
	}
}

// A coarse file system is known by its own times. An overlay shows no others, and
// a commit sets no others.
func TestTimeStep(t *testing.T) {
	at := time.Unix(1e9, 0)
	for _, c := range []struct {
		ns   int
		fine bool
		want time.Duration
	}{
		{0, true, 2 * time.Second},
		{10_000_000, true, 10 * time.Millisecond},
		{123_456_700, true, 1},
		{123_456_000, false, time.Microsecond},
		{123_456_700, false, 100},
		{123_456_789, false, 100},
	} {
		if got := stepFrom(at.Add(time.Duration(c.ns)), c.fine); got != c.want {
			t.Errorf("%d ns, fine %v: %v, want %v", c.ns, c.fine, got, c.want)
		}
	}
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "old", "d/": ""})
	h := open(t, dir)
	if h.TimeStep() != 1 {
		t.Errorf("step %v here", h.TimeStep())
	}
	h.times = 2 * time.Second
	now := time.Unix(1_800_000_001, 987654321)
	g := &guest{New(h, Options{Budget: ample(), Now: func() time.Time { return now }})}
	defer g.Close()
	n, err := g.node("f", true)
	must(t, err)
	must(t, errorsOf(g.write("d/n", "x", 0), g.SetTimes(n, time.Unix(1001, 5))))
	for path, want := range map[string]time.Time{"f": time.Unix(1000, 0), "d": time.Unix(1_800_000_000, 0), "d/n": time.Unix(1_800_000_000, 0)} {
		n, err := g.node(path, true)
		must(t, err)
		if info, err := g.Info(n); err != nil || !info.ModTime.Equal(want) {
			t.Errorf("%s shown: %v, %v", path, info.ModTime, err)
		}
		if info, _, err := g.Result().Lstat(path); err != nil || !info.ModTime.Equal(want) {
			t.Errorf("%s left: %v, %v", path, info.ModTime, err)
		}
	}
	if g.Result().TimeStep() != 2*time.Second {
		t.Errorf("step of what is left: %v", g.Result().TimeStep())
	}
	must(t, g.commit(t, h))
	for path, want := range map[string]time.Time{"f": time.Unix(1000, 0), "d": time.Unix(1_800_000_000, 0), "d/n": time.Unix(1_800_000_000, 0)} {
		if info, _, err := h.Lstat(path); err != nil || !info.ModTime.Equal(want) {
			t.Errorf("%s committed: %v, %v", path, info.ModTime, err)
		}
	}
}
