package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

// Local is the principal that everybody is where nobody has to authenticate.
const Local = "local"

const maxPrincipals = 1000

func (d *decoder) principals(v strictyaml.Value) []Principal {
	const mend = `write [{name: alice, token: "sha256:…"}], or leave principals out`
	items := v.Each(mend)
	switch {
	case !v.Present():
		return nil
	case len(items) == 0:
		v.Fail("is empty, which would let nobody in", mend)
	case len(items) > maxPrincipals:
		v.Fail(fmt.Sprintf("more than %d principals", maxPrincipals), "remove some")
		return nil
	}
	list := make([]Principal, 0, len(items))
	names, tokens := map[string]int{}, map[[32]byte]int{}
	for i, item := range items {
		o := object(item, "principals[]")
		name, token := o.Required("name"), o.Required("token")
		p := Principal{Name: name.Pattern(tool.ValidPackageName, nameMend), Token: digest(token)}
		if p.Name == Local {
			name.Fail(Local+" is everybody where there are no principals", "choose another name")
		}
		if other, ok := names[p.Name]; ok {
			name.Fail(fmt.Sprintf("%q is the name of principals[%d] already", p.Name, other), "rename one")
		}
		if other, ok := tokens[p.Token]; ok {
			token.Fail(fmt.Sprintf("is that of principals[%d] already", other), "give each a token of their own")
		}
		if d.Failed() {
			return nil
		}
		names[p.Name], tokens[p.Token] = i, i
		list = append(list, p)
	}
	return list
}

// digest returns a SHA-256. Its errors do not show the value: it may be the
// token itself.
func digest(v strictyaml.Value) (hash [32]byte) {
	const mend = "write sha256: and the SHA-256 of the token in 64 lower-case hexadecimal digits, never the token"
	text, ok := strings.CutPrefix(v.Text(mend), "sha256:")
	b, err := hex.DecodeString(text)
	if !ok || err != nil || len(b) != len(hash) || strings.ToLower(text) != text {
		v.Fail("is not the SHA-256 of a token", mend)
		return hash
	}
	copy(hash[:], b)
	if hash == sha256.Sum256(nil) {
		v.Fail("is the SHA-256 of an empty text", mend)
	}
	return hash
}
