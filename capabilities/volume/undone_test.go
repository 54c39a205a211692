package volume

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settled waits until the times of what was planted can tell a change.
func settled() { time.Sleep(2 * tick) }

// rolledBack returns a change of every sort that failed once, at its very end,
// and was taken back.
func rolledBack(t *testing.T) (h *HostDir, dir string, c *Change) {
	t.Helper()
	h, dir = planted(t, lively)
	settled()
	g := overlay(t, h)
	livelyCall(t, g)
	c, err := g.Change()
	must(t, err)
	failOnce(t, h, c)
	return h, dir, c
}

func failOnce(t *testing.T, h *HostDir, c *Change) {
	t.Helper()
	injected := errors.New("injected")
	h.disk.fault = func(op, name string) error {
		if op == "sync" && name == "." {
			return injected
		}
		return nil
	}
	if err := h.Apply(t.Context(), c); !errors.Is(err, injected) {
		t.Fatalf("apply: %v", err)
	}
	h.disk.fault = nil
}

// A change that was taken back can be tried again, also after several faults,
// and so can one that was prepared meanwhile or comes from a decoder.
func TestRetryAfterFault(t *testing.T) {
	h, dir, c := rolledBack(t)
	g := overlay(t, h)
	g.content(t, "removed")
	reader, err := g.Change()
	must(t, err)
	failOnce(t, h, c)
	failOnce(t, h, c)
	must(t, h.Check(t.Context(), reader))
	b, err := json.Marshal(c)
	must(t, err)
	var decoded Change
	must(t, json.Unmarshal(b, &decoded))
	must(t, h.Apply(t.Context(), &decoded))
	want := t.TempDir()
	plant(t, want, livelyAfter)
	sameImage(t, image(t, dir), image(t, want))
}

// What somebody changes after a fault is seen, also when the size is the same
// and the time is put back.
func TestConflictAfterFault(t *testing.T) {
	for name, meanwhile := range map[string]func(string) error{
		"overwritten": overwrite("replaced", "OLD"),
		"forged":      forge("replaced", "OLD"),
		"moved":       forge("moved", "WANDER"),
		"mode":        func(dir string) error { return os.Chmod(filepath.Join(dir, "removed"), 0o600) },
		"replaced": func(dir string) error {
			return errors.Join(overwriteAll(dir, "other", "bye"), os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "removed")))
		},
		"gone": removed("timed"),
	} {
		t.Run(name, func(t *testing.T) {
			h, dir, c := rolledBack(t)
			must(t, meanwhile(dir))
			before := image(t, dir)
			if err := h.Apply(t.Context(), c); !errors.Is(err, ErrConflict) {
				t.Errorf("apply: %v", err)
			}
			sameImage(t, image(t, dir), before)
		})
	}
}

// A file that another stamp was taken of in the meantime is not mistaken for
// what it was before that.
func TestUndoneForgetsChanged(t *testing.T) {
	h, dir, c := rolledBack(t)
	must(t, forge("replaced", "OLD")(dir))
	settled()
	g := overlay(t, h)
	must(t, g.write("replaced", "other", -1))
	other, err := g.Change()
	must(t, err)
	failOnce(t, h, other)
	if err := h.Apply(t.Context(), c); !errors.Is(err, ErrConflict) {
		t.Errorf("the older change: %v", err)
	}
	must(t, h.Apply(t.Context(), other))
}

// A large file that goes on being changed is read in the end: its times say
// nothing.
func TestEarlyFileChangedAllTheTime(t *testing.T) {
	h, dir := planted(t, map[string]string{"a": strings.Repeat("x", waitSize)})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = overwrite("a", "y")(dir)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // the other goroutine may rest
		start := time.Now()
		_, st, err := h.Lstat("a")
		must(t, err)
		if took := time.Since(start); took > 10*time.Second { // a wait that has no end takes the minute
			t.Errorf("it took %v", took)
		}
		if st.Digest != "" {
			return
		}
	}
	t.Error("no digest")
}

// Where times are counted in seconds, a file is early for as long.
func TestEarlyCoarse(t *testing.T) {
	fi := fakeInfo{at: time.Now().Truncate(time.Second)}
	if !coarse(fi) || !early(fi) {
		t.Errorf("changed this second: coarse %v, early %v", coarse(fi), early(fi))
	}
	fi.at = fi.at.Add(-3 * time.Second)
	if early(fi) {
		t.Error("three seconds ago: early")
	}
	fi.at = time.Now().Add(-2 * tick).Truncate(time.Microsecond).Add(1)
	if coarse(fi) || early(fi) {
		t.Errorf("fine times: coarse %v, early %v", coarse(fi), early(fi))
	}
}

type fakeInfo struct {
	os.FileInfo
	at time.Time
}

func (f fakeInfo) Mode() os.FileMode  { return 0o644 }
func (f fakeInfo) ModTime() time.Time { return f.at }
func (f fakeInfo) Sys() any           { return nil }

// A file that goes away, or becomes something else, between two looks at it is
// a conflict.
func TestVanishesWhileChecked(t *testing.T) {
	for name, meanwhile := range map[string]func(string) error{
		"gone": removed("f"),
		"directory": func(dir string) error {
			return errors.Join(removed("f")(dir), os.Mkdir(filepath.Join(dir, "f"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := planted(t, map[string]string{"f": "old"})
			g := stamped(t, h, "f")
			g.Stamp.Digest = strings.Repeat("0", 64)
			st := g.Stamp
			st.Digest = ""
			must(t, meanwhile(dir))
			_, err := h.digest("f")
			if err := h.unlessChanged("f", st, err); !errors.Is(err, ErrConflict) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A base that vanishes while new contents are prepared is a conflict.
func TestVanishesWhilePreparing(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "0123456789"})
	g := overlay(t, h)
	must(t, g.write("f", "x", 3))
	h.disk.fault = func(op, _ string) error {
		if op == "create" {
			return removed("f")(dir)
		}
		return nil
	}
	if err := g.commit(t, h); !errors.Is(err, ErrConflict) {
		t.Errorf("apply: %v", err)
	}
}
