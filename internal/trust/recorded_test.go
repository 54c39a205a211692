package trust

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// describing returns a package that describes itself, without its tools and with
// them.
func describing(t *testing.T) (silent, described Candidate) {
	t.Helper()
	described = notes(t)
	silent = notes(t, func(m *tool.Manifest) { m.Tools = nil })
	described.Definitions = described.Package.Manifest.Tools
	described.Package = silent.Package
	return silent, described
}

// What a package is trusted to have can be known without its telling.
func TestRecorded(t *testing.T) {
	s := open(t)
	silent, described := describing(t)
	if _, ok := s.Recorded(silent); ok {
		t.Error("recorded before its first use")
	}
	was := admit(t, s, described)
	r, ok := s.Recorded(silent)
	if !ok || !reflect.DeepEqual(r, was) {
		t.Errorf("recorded %t, %+v", ok, r)
	}
	again := described
	if again.Definitions = r.Definitions(); r.Holds(again) != nil {
		t.Error("what is recorded is not what is recorded")
	}
	slices.Reverse(described.Definitions)
	if err := r.Holds(described); err != nil {
		t.Errorf("in another order: %v", err)
	}
	if err := r.Holds(silent); !errors.Is(err, ErrCandidate) {
		t.Errorf("without tools: %v", err)
	}
	lying := described
	lying.Definitions = slices.Clone(described.Definitions)
	lying.Definitions[0].Claim.ReadOnly = capabilities.True
	lying.Definitions[1].Claim.ReadOnly = capabilities.True
	if _, changed := errors.AsType[*ChangedError](r.Holds(lying)); !changed {
		t.Error("other hints are held to be the same")
	}
}

// A package that is not, bit for bit, the one on record is known by nothing.
func TestNotRecorded(t *testing.T) {
	s := open(t)
	admit(t, s, notes(t))
	if _, ok := s.Recorded(notes(t)); !ok {
		t.Error("the same is not recorded")
	}
	module := notes(t)
	module.Package = parse(t, manifest, []byte("another"))
	other := notes(t)
	other.Name = "other"
	unnamed := notes(t)
	unnamed.Name = ""
	for name, c := range map[string]Candidate{
		"another module":   module,
		"another name":     other,
		"no name":          unnamed,
		"another manifest": notes(t, func(m *tool.Manifest) { m.Version = "1.0.1" }),
	} {
		if _, ok := s.Recorded(c); ok {
			t.Errorf("%s is recorded", name)
		}
	}
	for _, b := range []string{"", "{}", records(t, s)["notes.json"][1:]} {
		if err := os.WriteFile(s.file("notes"), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Recorded(notes(t)); ok {
			t.Errorf("a damaged record is taken: %.20q", b)
		}
	}
}
