package mcpserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// A session's id says again what the client declared, and nothing else does.
func TestSessionCapabilities(t *testing.T) {
	all := tool.ClientCapabilities()
	if len(all) != len(capabilityLetter) {
		t.Fatalf("%d letters for %d capabilities", len(capabilityLetter), len(all))
	}
	for set := range 1 << len(all) {
		var names []string
		for i, name := range all {
			if set>>i&1 == 1 {
				names = append(names, name)
			}
		}
		id := newSession(names)
		if !validSession(id) || newSession(names) == id || !slices.Equal(sessionCapabilities(id), names) {
			t.Errorf("%v: %s says %v", names, id, sessionCapabilities(id))
		}
	}
	random := strings.Repeat("S", sessionLength)
	for id, want := range map[string]string{
		"": "", "S": "", random: "", random + "S": "sampling", random + "SE": "elicitation,sampling", random + "Q": "",
		random + "s": "", random + "ERSS": "", random + " S": "", random[1:] + ":S": "", "\x00" + random + "S": "",
	} {
		if got := strings.Join(sessionCapabilities(id), ","); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add(newSession(nil))
	f.Add(newSession(tool.ClientCapabilities()))
	f.Fuzz(func(t *testing.T, id string) {
		names := sessionCapabilities(id)
		if !validSession(id) && names != nil || !slices.IsSorted(names) || len(names) > max(0, len(id)-sessionLength) {
			t.Errorf("%q says %v", id, names)
		}
	})
}
