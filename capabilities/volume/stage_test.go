package volume

import (
	"slices"
	"strings"
	"testing"
)

// A change deletes the stages of dead processes that hold nothing of the
// volume, leaves the others and tells of them once.
func TestStagesOfOthers(t *testing.T) {
	h, dir := planted(t, map[string]string{
		"f": "old", ".sandboxd-new/n-1": "new", ".sandboxd-none/": "", ".sandboxd-done-x/o-1": "removed",
		".sandboxd-half/n-1": "new", ".sandboxd-half/o-2": "the only copy", ".sandboxd-other/1": "unknown",
		".sandboxd-file": "no folder",
	})
	for range 2 {
		g := overlay(t, h)
		must(t, g.write("f", "new", 0))
		must(t, g.commit(t, h))
	}
	var left []string
	for p := range image(t, dir) {
		if !strings.Contains(p, "/") {
			left = append(left, p)
		}
	}
	slices.Sort(left)
	if want := []string{".sandboxd-file", ".sandboxd-half", ".sandboxd-other", "f"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if got := h.Abandoned(); !slices.Equal(got, []string{".sandboxd-half", ".sandboxd-other"}) {
		t.Errorf("abandoned %q", got)
	}
	if got := h.Abandoned(); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
}

// Where the folder's lock cannot be had, a stage may be in use.
func TestStagesInUse(t *testing.T) {
	h, dir := planted(t, map[string]string{".sandboxd-new/n-1": "new"})
	l, err := h.lock(t.Context(), false)
	must(t, err)
	defer l.unlock()
	l.alone = false
	l.sweep()
	if got := image(t, dir); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}

// A stage shows what it is: a change that fails while it is prepared has only
// new contents there, and one that cannot be taken back has old files.
func TestStageNames(t *testing.T) {
	h, dir := planted(t, map[string]string{"f": "old", "g": "old"})
	var stages []string
	h.disk.fault = func(op, name string) error {
		if op == "rename" && strings.HasPrefix(name, reservedPrefix) && strings.Contains(name, "/n-") {
			for p := range image(t, dir) {
				if strings.HasPrefix(p, reservedPrefix) && strings.Contains(p, "/") {
					_, part, _ := strings.Cut(p, "/")
					stages = append(stages, part[:2])
				}
			}
		}
		return nil
	}
	g := overlay(t, h)
	must(t, g.write("f", "new", -1))
	must(t, g.rm("g"))
	must(t, g.commit(t, h))
	slices.Sort(stages)
	if !slices.Equal(stages, []string{newPart, oldPart, oldPart}) {
		t.Errorf("parts %q", stages)
	}
}
