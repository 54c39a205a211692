package undo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

var lively = map[string]string{
	"a.txt": "old\n", "log": strings.Repeat("line\n", 100_000), "big.bin": strings.Repeat("\x00\x01", 400_000),
	"d/x": "x", "d/y": "y", "d/e/z": "z", "empty/": "", "l": "->a.txt", "d/l": "->x", "dev": "special", "none": "",
}

func TestRoundTrips(t *testing.T) {
	for name, do := range map[string]func(g guest) error{
		"create":            func(g guest) error { return g.write("new", "n", 0) },
		"create empty":      func(g guest) error { return g.write("new", "", 0) },
		"overwrite":         func(g guest) error { return g.write("a.txt", "new", -1) },
		"overwrite empty":   func(g guest) error { return g.write("none", "new", -1) },
		"make empty":        func(g guest) error { return g.truncate("a.txt", 0) },
		"append":            func(g guest) error { return g.write("log", "more", 500_000) },
		"patch":             func(g guest) error { return g.write("big.bin", "patch", 300_000) },
		"shorten":           func(g guest) error { return g.truncate("big.bin", 270_000) },
		"lengthen":          func(g guest) error { return g.truncate("big.bin", 2_000_000) },
		"remove":            func(g guest) error { return g.rm("big.bin") },
		"remove tree":       func(g guest) error { return first(g.mv("d/l", "l9"), g.rmAll("d")) },
		"move":              func(g guest) error { return g.mv("log", "d/log") },
		"move and patch":    func(g guest) error { return first(g.mv("log", "d/log"), g.write("d/log", "X", 270_000)) },
		"move over":         func(g guest) error { return g.mv("d/x", "a.txt") },
		"move tree":         func(g guest) error { return g.mv("d", "empty") },
		"move tree over":    func(g guest) error { return g.mv("d", "empty/in") },
		"move link":         func(g guest) error { return g.mv("l", "d/l2") },
		"move special":      func(g guest) error { return g.mv("dev", "d/dev") },
		"swap":              func(g guest) error { return first(g.mv("a.txt", "t"), g.mv("log", "a.txt"), g.mv("t", "log")) },
		"file to directory": func(g guest) error { return first(g.rm("a.txt"), g.mkdir("a.txt"), g.write("a.txt/in", "i", 0)) },
		"directory to file": func(g guest) error { return first(g.rm("empty"), g.write("empty", "e", 0)) },
		"times": func(g guest) error {
			return first(g.touch("log", time.Unix(5, 6)), g.touch("d", time.Unix(7, 8)), g.touch(".", time.Unix(9, 0)))
		},
		"name of the aside": func(g guest) error {
			return first(g.mkdir("undo-0"), g.mv("log", "undo-0/log"), g.write("undo-1", "", 0))
		},
		"circle of trees":  func(g guest) error { return first(g.mv("d/e", "e"), g.mv("d", "e/d"), g.mv("e", "d")) },
		"file under moved": func(g guest) error { return first(g.mv("a.txt", "b"), g.mkdir("a.txt"), g.mv("b", "a.txt/b")) },
	} {
		t.Run(name, func(t *testing.T) {
			rec := roundTrip(t, planted(lively), func(g guest) { must(t, do(g)) })
			if rec.Empty() {
				t.Error("nothing was recorded")
			}
		})
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What an overlay cannot make is moved back, or lost when the record is made.
func TestLinksAndModes(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(g guest) error
		able bool
		why  Why
	}{
		"link":           {func(g guest) error { return g.rm("l") }, canLink, WhyLink},
		"link replaced":  {func(g guest) error { return g.mv("d/l", "l") }, canLink, WhyLink},
		"file":           {func(g guest) error { return g.rm("private") }, canChmod, WhyMode},
		"directory":      {func(g guest) error { return g.rmAll("closed") }, canChmod, WhyMode},
		"moved over":     {func(g guest) error { return g.mv("private", "a.txt") }, canChmod, WhyMode},
		"moved tree":     {func(g guest) error { return g.mv("closed", "open") }, canChmod, WhyMode},
		"moved":          {func(g guest) error { return g.mv("private", "d/p") }, true, ""},
		"overwritten":    {func(g guest) error { return g.write("private", "new", -1) }, true, ""},
		"made again":     {func(g guest) error { return first(g.rm("private"), g.write("private", "new", 0)) }, true, ""},
		"special":        {func(g guest) error { return g.rm("dev") }, false, WhySpecial},
		"special moved":  {func(g guest) error { return g.mv("dev", "d/dev") }, true, ""},
		"not readable":   {func(g guest) error { return g.rm("denied") }, false, WhyUnreadable},
		"moved unread":   {func(g guest) error { return g.mv("denied", "d/denied") }, true, ""},
		"touched unread": {func(g guest) error { return g.touch("denied", time.Unix(1, 0)) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := planted(lively)
			b["private"] = item{mode: 0o600, time: when, data: "secret"}
			b["denied"] = item{mode: 0o644, time: when, data: "unknown", denied: true}
			b["closed"] = item{kind: volume.Dir, mode: 0o700, time: when}
			b["closed/x"] = item{mode: 0o644, time: when, data: "x"}
			if c.able && !strings.HasSuffix(name, "unread") {
				delete(b, "denied") // an image reads all
				roundTrip(t, b, func(g guest) { must(t, c.do(g)) })
				return
			}
			call := over(b, 1)
			must(t, c.do(call))
			rec := recorded(t, memstore.New(), b, call)
			if c.able {
				g := undone(t, nil, call.Result(), rec)
				info, _, err := g.Result().Lstat("denied")
				if err != nil || !info.ModTime.Equal(when) {
					t.Errorf("after undo: %v, %v", info, err)
				}
				return
			}
			if len(rec.Lost) != 1 || rec.Lost[0].Why != c.why {
				t.Errorf("lost: %v, want %q", rec.Lost, c.why)
			}
			err := Restore(t.Context(), rec, only(over(call.Result(), 2), nil))
			var e *IncompleteError
			if !errors.Is(err, ErrIncomplete) || !errors.As(err, &e) || len(e.Lost) != 1 {
				t.Errorf("restore: %v", err)
			}
		})
	}
}

// What others did since refuses the undo, and nothing is changed then.
func TestChangedSince(t *testing.T) {
	call := func(g guest) error {
		return first(g.write("a.txt", "new", -1), g.rm("big.bin"), g.mkdir("made"), g.write("made/f", "f", 0),
			g.mv("d/l", "l2"), g.mv("dev", "dev2"), g.touch("d", time.Unix(3, 0)))
	}
	for name, c := range map[string]struct {
		since  func(b forest)
		object string
		how    Difference
	}{
		"nothing":           {func(forest) {}, "", ""},
		"times":             {func(b forest) { b.change("a.txt", func(i *item) { i.time = when.Add(1) }) }, "", ""},
		"elsewhere":         {func(b forest) { b["d/other"] = item{mode: 0o644, data: "o"} }, "", ""},
		"content":           {func(b forest) { b.change("a.txt", func(i *item) { i.data = "eew" }) }, "/data/a.txt", OtherContent},
		"size":              {func(b forest) { b.change("made/f", func(i *item) { i.data = "ff" }) }, "/data/made/f", OtherContent},
		"mode":              {func(b forest) { b.change("a.txt", func(i *item) { i.mode = 0o600 }) }, "/data/a.txt", OtherMode},
		"mode of directory": {func(b forest) { b.change("made", func(i *item) { i.mode = 0o700 }) }, "/data/made", OtherMode},
		"mode of touched":   {func(b forest) { b.change("d", func(i *item) { i.mode = 0o700 }) }, "/data/d", OtherMode},
		"gone":              {func(b forest) { delete(b, "made/f") }, "/data/made/f", NowGone},
		"there again":       {func(b forest) { b["big.bin"] = item{mode: 0o644} }, "/data/big.bin", NowThere},
		"kind":              {func(b forest) { b["a.txt"] = item{kind: volume.Symlink, data: "x"} }, "/data/a.txt", OtherKind},
		"link":              {func(b forest) { b.change("l2", func(i *item) { i.data = "y" }) }, "/data/l2", OtherContent},
		"special gone":      {func(b forest) { delete(b, "dev2") }, "/data/dev2", NowGone},
		"something else":    {func(b forest) { b["made/g"] = item{mode: 0o644} }, "/data/made", OtherNames},
	} {
		t.Run(name, func(t *testing.T) {
			b, blobs := planted(lively), memstore.New()
			g := over(b, 1)
			must(t, call(g))
			rec := recorded(t, blobs, b, g)
			after := copied(t, g.Result())
			c.since(after)
			before := image(t, after)
			back := over(after, 2)
			err := Restore(t.Context(), rec, only(back, blobs))
			if c.how == "" {
				must(t, err)
				return
			}
			var e *ChangedError
			if !errors.Is(err, ErrChanged) || !errors.As(err, &e) || len(e.Changed) != 1 ||
				e.Changed[0] != (Changed{"data", c.object, c.how}) {
				t.Errorf("%v", err)
			}
			sameImage(t, "refused", image(t, back.Result()), before)
			if ch, err := back.Change(); err != nil || !ch.Empty() {
				t.Errorf("change: %v, %v", ch, err)
			}
		})
	}
}

// An entry that cannot be shown keeps a directory.
func TestHiddenEntry(t *testing.T) {
	b, blobs := planted(lively), memstore.New()
	g := over(b, 1)
	must(t, g.mkdir("made"))
	rec := recorded(t, blobs, b, g)
	err := Restore(t.Context(), rec, only(over(hiding{copied(t, g.Result())}, 2), blobs))
	var e *ChangedError
	if !errors.As(err, &e) || e.Changed[0].How != OtherNames {
		t.Errorf("%v", err)
	}
}

// hiding has something in each directory that it does not show.
type hiding struct{ forest }

func (h hiding) List(name string) ([]volume.Entry, bool, error) {
	list, err := h.ReadDir(name)
	return list, true, err
}

// A content that is gone refuses the undo before anything is changed.
func TestBlobGone(t *testing.T) {
	b, blobs := planted(lively), memstore.New()
	call := over(b, 1)
	must(t, first(call.write("a.txt", "new", -1), call.rm("big.bin"), call.write("z", "", 0)))
	rec := recorded(t, blobs, b, call)
	for _, d := range rec.Blobs() {
		for name, broken := range map[string]store.Blobs{
			"gone": without{blobs, d, store.ErrGone}, "error": without{blobs, d, errDisk}, "cut": without{blobs, d, nil}, "none": nil,
		} {
			back := over(call.Result(), 2)
			err := Restore(t.Context(), rec, only(back, broken))
			var gone *GoneError
			switch {
			case name == "error" && !errors.Is(err, errDisk):
				t.Errorf("%s: %v", name, err)
			case name != "error" && (!errors.Is(err, store.ErrGone) || !errors.As(err, &gone) || gone.Object != "/data/big.bin"):
				t.Errorf("%s: %v", name, err)
			}
			if ch, err := back.Change(); err != nil || !ch.Empty() {
				t.Errorf("%s: change: %v, %v", name, ch, err)
			}
		}
	}
	if len(rec.Blobs()) == 0 {
		t.Error("no blobs")
	}
}

var errDisk = errors.New("disk")

// without has not one blob; with no error, it has less of it.
type without struct {
	store.Blobs
	digest store.Digest
	err    error
}

func (w without) Blob(ctx context.Context, d store.Digest) ([]byte, error) {
	b, err := w.Blobs.Blob(ctx, d)
	if d != w.digest || err != nil {
		return b, err
	}
	return b[1:], w.err
}

func TestRefusals(t *testing.T) {
	b := planted(lively)
	call := over(b, 1)
	must(t, call.write("a.txt", "new", -1))
	rec := recorded(t, nil, b, call)
	if err := Restore(t.Context(), rec, Where{}); !errors.Is(err, ErrNoVolume) {
		t.Errorf("no volume: %v", err)
	}
	if err := Restore(t.Context(), rec, only(guest{volume.New(call.Result(), volume.Options{})}, nil)); err == nil {
		t.Error("no budget: restored")
	} else if _, ok := errors.AsType[*volume.LimitError](err); !ok {
		t.Errorf("no budget: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Restore(ctx, rec, only(over(call.Result(), 2), nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	rec.UndoneBy = "c2"
	if err := Restore(t.Context(), rec, only(over(call.Result(), 2), nil)); !errors.Is(err, ErrUndone) {
		t.Errorf("undone: %v", err)
	}
}

// A directory in the place of a link that was moved: what is in it was not there,
// whatever the link leads to.
func TestBehindLink(t *testing.T) {
	b := planted(map[string]string{"d/f": "d's own\n", "l": "->d"})
	rec := roundTrip(t, b, func(g guest) {
		must(t, first(g.mv("l", "l2"), g.mkdir("l"), g.write("l/f", "new\n", 0)))
	})
	for _, p := range rec.Volumes[0].Paths {
		if p.Path == "l/f" && p.Was.Kind != Absent {
			t.Errorf("l/f was %+v", p.Was)
		}
	}
	d, err := rec.Diff(t.Context(), Show{}, Now{Volumes: func(string) volume.Base { return b }})
	if err != nil || !strings.Contains(d.String(), "changed since") {
		t.Errorf("%v, %v", d, err)
	}
}
