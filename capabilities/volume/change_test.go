package volume

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// A change can be applied after it went through JSON, with the same outcome.
func TestChangeJSON(t *testing.T) {
	h, _ := planted(t, lively)
	g := overlay(t, h)
	livelyCall(t, g)
	_, err := g.List(g.Root())
	must(t, err)
	c, err := g.Change()
	must(t, err)
	b, err := json.Marshal(c)
	must(t, err)
	var decoded Change
	must(t, json.Unmarshal(b, &decoded))
	if !reflect.DeepEqual(*c, decoded) {
		t.Errorf("decoded %+v\nwant %+v", decoded, *c)
	}
	if len(b) > 20000 {
		t.Errorf("%d bytes for a few small changes", len(b))
	}
}

// A change of a few bytes in a large file carries those bytes only.
func TestChangeIsSmall(t *testing.T) {
	h, dir := planted(t, nil)
	path := filepath.Join(dir, "large")
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Truncate(path, 1<<30))
	g := overlay(t, h)
	must(t, g.write("large", "0123456789", 1<<29+7))
	c, err := g.Change()
	must(t, err)
	b, err := json.Marshal(c)
	must(t, err)
	if len(b) > 2000 || len(c.Steps) != 1 || c.Steps[0].Keep != 1<<30 {
		t.Errorf("%d bytes: %.300s", len(b), b)
	}
	if bytes, _ := g.budget.Used(); bytes > 2*chunkSize {
		t.Errorf("%d bytes held", bytes)
	}
}

// Changes that no call makes, but that another process may: a copy of a file
// that stays, a file moved with another mode and time.
func TestChangeByHand(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old", "m": "moved"})
	at := time.Unix(1000, 0).UTC()
	must(t, h.Apply(t.Context(), &Change{
		Guards: []Guard{stamped(t, h, "copy"), stamped(t, h, "f"), stamped(t, h, "m"), stamped(t, h, "n")},
		Steps: []Step{
			{Action: ActRemove, Path: "m"},
			{Action: ActPut, Path: "copy", Mode: 0o600, Base: "f", Keep: 3, Size: 5},
			{Action: ActPut, Path: "n", Mode: 0o600, Base: "m", Keep: 5, Size: 5, ModTime: at},
		},
	}))
	sameImage(t, image(t, dir), map[string]string{
		"f": "-rw-r--r-- old", "copy": "-rw------- old\x00\x00", "n": "-rw------- moved",
	})
	fi, err := os.Stat(filepath.Join(dir, "n"))
	if err != nil || !fi.ModTime().Equal(at) {
		t.Errorf("time %v, %v", fi.ModTime(), err)
	}
}

// stamped returns a guard for what is at a path now.
func stamped(t tester, h *HostDir, path string) Guard {
	_, st, err := h.Lstat(path)
	if err != nil && !isAbsent(err) {
		t.Fatal(err)
	}
	return Guard{Path: path, Stamp: st}
}

// A file that is moved and then written keeps what was not written.
func TestMovedAndPatched(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "0123456789"})
	g := overlay(t, h)
	must(t, g.mv("f", "g"))
	must(t, g.write("g", "XX", 4))
	n, err := g.node("g", true)
	must(t, err)
	must(t, g.Truncate(n, 8))
	must(t, g.Truncate(n, 12))
	must(t, g.SetTimes(n, time.Unix(1000, 0)))
	must(t, g.commit(t, h))
	sameImage(t, image(t, dir), map[string]string{"g": "-rw-r--r-- 0123XX67\x00\x00\x00\x00"})
}
