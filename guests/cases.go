package guests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
)

// Case is one call of a bundled tool and how it should end.
type Case struct {
	Tool      string          `json:"tool"` // empty where loading is the case
	Arguments json.RawMessage `json:"arguments"`
	Hint      string          `json:"hint"`   // the hint on trial; empty where none is
	Honest    *bool           `json:"honest"` // nil where no claim is on trial
	Attempted string          `json:"attempted"`
	Outcome   string          `json:"outcome"` // an outcome of a call, or "load_error"
}

// Cases returns the cases of a package in the order in which they are run, on
// one volume: the later ones may need what the earlier ones left.
func Cases(name string) ([]Case, error) {
	file := path.Join(name, "cases.json")
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
