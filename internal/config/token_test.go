package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token, hash, err := NewToken()
		if err != nil {
			t.Fatal(err)
		}
		if seen[token] || len(token) != len("sbx_")+43 || !strings.HasPrefix(token, "sbx_") || hash != sha256.Sum256([]byte(token)) {
			t.Fatalf("%q", token)
		}
		seen[token] = true
	}
}

func TestAuthenticate(t *testing.T) {
	alice, aliceHash, err := NewToken()
	if err != nil {
		t.Fatal(err)
	}
	bob, bobHash, err := NewToken()
	if err != nil {
		t.Fatal(err)
	}
	principals := []Principal{{"alice", aliceHash}, {"bob", bobHash}, {"nothing", sha256.Sum256(nil)}}
	for header, want := range map[string]string{
		"Bearer " + alice: "alice", "bearer " + bob: "bob", "BEARER " + bob: "bob",
		"": "", "Bearer": "", "Bearer ": "", alice: "", "Basic " + alice: "", "Bearer  " + alice: "",
		"Bearer " + alice + " ": "", "Bearer " + alice + bob: "", "Bearer " + strings.ToUpper(alice): "",
		"Bearer " + hex.EncodeToString(aliceHash[:]): "", " Bearer " + alice: "", "Bearer\t" + alice: "",
	} {
		name, ok := Authenticate(principals, header)
		if name != want || ok != (want != "") {
			t.Errorf("%q: %q, %t, want %q", header, name, ok, want)
		}
	}
	if name, ok := Authenticate(nil, "Bearer "+alice); ok || name != "" {
		t.Errorf("nobody is %q", name)
	}
}

// A token that was hashed into a configuration is that of its principal, and
// changed in one byte it is nobody's.
func TestTokenThroughConfiguration(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("principals:\n")
	var tokens []string
	for i := range 5 {
		token, hash, err := NewToken()
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
		fmt.Fprintf(&doc, "- {name: p%d, token: \"sha256:%x\"}\n", i, hash)
	}
	c, err := Parse("f", []byte(doc.String()))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, 4).Draw(rt, "principal")
		if name, ok := Authenticate(c.Principals, "Bearer "+tokens[i]); !ok || name != fmt.Sprintf("p%d", i) {
			rt.Fatalf("p%d is %q", i, name)
		}
		b := []byte(tokens[i])
		b[rapid.IntRange(0, len(b)-1).Draw(rt, "at")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "change"))
		if name, ok := Authenticate(c.Principals, "Bearer "+string(b)); ok {
			rt.Fatalf("%q is %q", b, name)
		}
	})
}
