package guests

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Corpus is the cases of package corpus: hints of public servers that are wrong,
// disputed or right in a way that is easy to get wrong. The package is not among
// [Names]: it is for trying an engine, not for showing it.
type Corpus struct {
	Cases   []CorpusCase `json:"cases"`
	Omitted []struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	} `json:"omitted"`
}

// CorpusCase is one call of a tool of the corpus and how it should end. A case
// begins with a volume of its own, which [Seed] makes: Seed("corpus", c.Seed, dir).
// What the package requests is allowed; of its relaxations all where Approved is
// set, else none.
type CorpusCase struct {
	ID        string          `json:"id"`
	Variant   string          `json:"variant"` // tells the cases of one ID apart
	Source    string          `json:"source"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Seed      string          `json:"seed"`

	Before         []CorpusCall `json:"before"` // made first; they end well
	During         []CorpusCall `json:"during"` // made once, when the call reports progress for the first time
	Approved       bool         `json:"approved"`
	OptionalWrites []string     `json:"optionalWrites"` // of the operator

	Declared map[string]bool `json:"declared"` // by hint; unset ones are absent
	Outcome  string          `json:"outcome"`  // "ok", "violation" or "tool_error"

	Violation *CorpusViolation `json:"violation"`
	Denials   []CorpusDenial   `json:"denials"` // all of them, in order
	Label     string           `json:"label"`   // what a third look, 25 hours later, tells

	// Left and LeftKeys are the guest paths and the keys that differ from before
	// the call, sorted, with what the calls of During changed; Sent is how many
	// messages were released.
	Left     []string            `json:"left"`
	LeftKeys []string            `json:"leftKeys"`
	Sent     int                 `json:"sent"`
	Holds    map[string][]string `json:"holds"` // by guest path: texts that the file has afterwards
	Text     string              `json:"text"`  // the answer; empty: any
	Note     string              `json:"note"`
}

// CorpusCall is a call around that of a case.
type CorpusCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// CorpusViolation is the first claim broken.
type CorpusViolation struct {
	Hint      string `json:"hint"`
	Operation string `json:"operation"`
	Phase     string `json:"phase"`
	Object    string `json:"object"` // see [Within]; empty: any
}

// CorpusDenial is what was refused while the call went on.
type CorpusDenial struct {
	Capability string `json:"capability"`
	Operation  string `json:"operation"`
	Object     string `json:"object"`
}

// Name returns what a test of the case is called.
func (c CorpusCase) Name() string {
	if c.Variant == "" {
		return c.ID
	}
	return c.ID + "/" + c.Variant
}

// ReadCorpus returns the corpus.
func ReadCorpus() (*Corpus, error) {
	const file = "corpus/corpus.json"
	text, err := sources.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var c Corpus
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &c, nil
}
