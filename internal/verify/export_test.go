package verify

import "encoding/json"

// Candidates returns the arguments made from a schema, by what the report calls
// the call.
func Candidates(schema string) map[string]string {
	m := map[string]string{}
	for _, c := range candidates(json.RawMessage(schema)) {
		m[c.id] = string(c.arguments)
	}
	return m
}

// Fewest is what finds the relaxations that a call needs.
var Fewest = fewest

// Shell joins words to a command line.
var Shell = shell
