package mcpserver

import (
	"crypto/rand"
	"strings"

	"github.com/sandboxd/sandboxd/tool"
)

// A session of a client before 2026-07-28 is nothing that is kept: its id is 26
// random characters of base 32 and, for each capability that the client declared,
// the letter below. Any server knows so what the client said once to another. A
// client that makes one up declares no more than it could have declared.
const sessionLength = 26

var capabilityLetter = map[string]string{
	tool.ClientElicitation: "E",
	tool.ClientRoots:       "R",
	tool.ClientSampling:    "S",
}

// newSession returns the id of a session of a client that declares the
// capabilities, names of [tool.ClientCapabilities].
func newSession(capabilities []string) string {
	id := rand.Text()
	for _, name := range capabilities {
		id += capabilityLetter[name]
	}
	return id
}

// validSession reports whether a session id looks like one of ours. What another
// server gave out is as good.
func validSession(id string) bool {
	return len(id) >= sessionLength && len(id) <= sessionLength+len(capabilityLetter) &&
		strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// sessionCapabilities returns what the client of the session declared, sorted.
func sessionCapabilities(id string) []string {
	if !validSession(id) {
		return nil
	}
	var names []string
	for _, name := range tool.ClientCapabilities() {
		if strings.Contains(id[sessionLength:], capabilityLetter[name]) {
			names = append(names, name)
		}
	}
	return names
}
