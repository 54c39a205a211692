package guests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Case is one call of a bundled tool and how it should end.
type Case struct {
	Tool      string          `json:"tool"` // empty where loading is the case
	Arguments json.RawMessage `json:"arguments"`
	Hint      string          `json:"hint"`   // the hint on trial; empty where none is
	Honest    *bool           `json:"honest"` // nil where no claim is on trial
	Attempted string          `json:"attempted"`
	Outcome   string          `json:"outcome"` // an outcome of a call, or "load_error"
	Phase     string          `json:"phase"`   // of the violation; empty: any
	Object    string          `json:"object"`  // of the violation, see [Within]; empty: any
	Label     string          `json:"label"`   // what a look 25 hours later tells; empty: nothing
}

// Cases returns the cases of a package in the order in which they are run, on
// one volume: the later ones may need what the earlier ones left.
func Cases(name string) ([]Case, error) {
	file := path.Join(name, "demo.json")
	text, err := sources.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var cases []Case
	if err := d.Decode(&cases); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cases, nil
}

// Within reports whether the object of a violation is the one that a case names,
// or a part of it: a JSON pointer into a file, or a longer one.
func Within(object, named string) bool {
	rest, ok := strings.CutPrefix(object, named)
	return ok && (rest == "" || rest[0] == '#' || rest[0] == '/')
}
