package files_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// authority is one of the situations that every operation is tried in.
type authority struct {
	name    string
	claim   capabilities.Effective
	access  capabilities.Access
	scratch bool
	sealed  bool
}

var authorities = []authority{
	{name: "read-only", claim: capabilities.Effective{ReadOnly: true}, access: capabilities.ReadAccess},
	{name: "write", claim: capabilities.Effective{Destructive: true}, access: capabilities.WriteAccess},
	{name: "write, volume for reading", claim: capabilities.Effective{Destructive: true}, access: capabilities.ReadAccess},
	{name: "read-only, no access", claim: capabilities.Effective{ReadOnly: true}},
	{name: "write, no access", claim: capabilities.Effective{Destructive: true}},
	{name: "read-only, scratch", claim: capabilities.Effective{ReadOnly: true}, scratch: true},
	{name: "sealed", claim: capabilities.Effective{Destructive: true}, sealed: true},
}

// world is a volume over the fixture with what its call recorded.
type world struct {
	root   *files.Handle
	other  *files.Handle // the root of a second volume
	tree   *volume.Overlay
	ledger *capabilities.Ledger
}

func newWorld(a authority, budget *volume.Budget) *world {
	const mount = "/data"
	o := volume.New(fixture, volume.Options{Budget: budget})
	l := capabilities.NewLedger(capabilities.Grant{
		Claim: a.claim,
		Volumes: []capabilities.VolumeGrant{
			{Name: "data", Path: mount, Access: a.access},
			{Name: "other", Path: "/other", Access: capabilities.WriteAccess},
		},
		OptionalWrites: []string{"*.lock"},
	}, capabilities.Notify{})
	w := &world{tree: o, ledger: l}
	switch {
	case a.sealed:
		w.root = files.Sealed("data", mount).Root()
	case a.scratch:
		w.root = files.Scratch(mount, o, l).Root()
	default:
		w.root = files.New("data", mount, o, l).Root()
	}
	w.other = files.New("other", "/other", volume.New(fixture, volume.Options{}), l).Root()
	return w
}

func ample() *volume.Budget { return &volume.Budget{Bytes: 1 << 20, Files: 100} }

// outcome says in one line what an operation came to.
func (w *world) outcome(err error) string {
	parts := []string{result(err)}
	for _, v := range w.ledger.Violations() {
		parts = append(parts, fmt.Sprintf("violation %s %s %s", v.Hint, v.Operation, v.Object))
	}
	for _, d := range w.ledger.Denials() {
		parts = append(parts, fmt.Sprintf("denial %s %s %s %s", d.Capability, d.Operation, d.Object, d.Errno))
	}
	return strings.Join(append(parts, w.changes()...), "; ")
}

func (w *world) changes() []string {
	c, err := w.tree.Change()
	if err != nil {
		return []string{"change: " + err.Error()}
	}
	var list []string
	for _, s := range c.Steps {
		list = append(list, fmt.Sprintf("%s %s %d", s.Action, s.Path, s.Size))
	}
	return list
}

// shown is a result that is no error but is to be seen in the golden file.
type shown string

func (s shown) Error() string { return string(s) }

func result(err error) string {
	var (
		violation *capabilities.Violation
		sealed    *files.SealedError
		errno     capabilities.Errno
		value     shown
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &violation):
		return "stop"
	case errors.As(err, &sealed):
		return fmt.Sprintf("sealed %s %s", sealed.Operation, sealed.Path)
	case errors.As(err, &errno):
		return string(errno)
	case errors.As(err, &value):
		return "ok " + string(value)
	}
	return fmt.Sprintf("%T", err)
}

// TestRules tries every operation under every authority and compares what it
// came to, what was recorded and what changed with the golden file.
func TestRules(t *testing.T) {
	var got bytes.Buffer
	for _, r := range rules {
		fmt.Fprintf(&got, "%s\n", r.name)
		for _, a := range authorities {
			w := newWorld(a, ample())
			fmt.Fprintf(&got, "    %s: %s\n", a.name, w.outcome(r.do(w)))
		}
	}
	golden := filepath.Join("testdata", "rules.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, strings.Split(string(want), "\n"), strings.Split(got.String(), "\n"))
}

func compare(t *testing.T, want, got []string) {
	t.Helper()
	var section string
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if g != "" && !strings.HasPrefix(g, " ") {
			section = g
		}
		if w != g {
			t.Errorf("%s:\n got %s\nwant %s", section, g, w)
		}
	}
}
