package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// path is a variable so that tests can move it.
var path = "/data/memory.jsonl"

// file is the graph as it is stored, a record a line, in the order of the file.
type file struct{ lines []*line }

// line is one line: an entity, a relation, or one that this version does not
// know and keeps as it is.
type line struct {
	text     []byte
	entity   *entity
	relation *relation

	observations []json.RawMessage // of an entity, as they are written
}

// load reads the graph; without a file it is empty.
func load() (*file, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &file{}, nil
	}
	if err != nil {
		return nil, err
	}
	f := &file{}
	for text := range bytes.Lines(b) {
		f.lines = append(f.lines, parse(bytes.TrimSuffix(text, []byte("\n"))))
	}
	return f, nil
}

// parse reads a line. A record that is not whole is kept and not shown.
func parse(text []byte) *line {
	l := &line{text: text}
	r := map[string]json.RawMessage{} // not a struct, whose names match in any case
	if json.Unmarshal(text, &r) != nil {
		return l
	}
	switch kind, _ := str(r["type"]); kind {
	case "entity":
		name, named := str(r["name"])
		typ, typed := str(r["entityType"])
		var raw []json.RawMessage
		if !named || !typed || json.Unmarshal(r["observations"], &raw) != nil || raw == nil {
			return l
		}
		e := &entity{name, typ, make([]string, len(raw))}
		for i := range raw {
			var ok bool
			if e.Observations[i], ok = str(raw[i]); !ok {
				return l
			}
		}
		l.entity, l.observations = e, raw
	case "relation":
		from, ok1 := str(r["from"])
		to, ok2 := str(r["to"])
		typ, ok3 := str(r["relationType"])
		if ok1 && ok2 && ok3 {
			l.relation = &relation{from, to, typ}
		}
	}
	return l
}

// str reads a JSON string; null is none.
func str(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// save writes a file beside the old one and renames it over it, so that nobody
// sees half a graph. It does so also where nothing changed, as the original does.
func (f *file) save() (err error) {
	var b bytes.Buffer
	for _, l := range f.lines {
		b.Write(l.text)
		b.WriteByte('\n')
	}
	temp := path + "." + rand.Text() + ".tmp"
	defer func() {
		if err != nil {
			err = errors.Join(err, removed(temp))
		}
	}()
	if err := os.WriteFile(temp, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// removed removes a file that may be there.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *file) addEntity(e entity) error {
	return f.add(struct {
		Type string `json:"type"`
		entity
	}{"entity", e})
}

func (f *file) addRelation(r relation) error {
	return f.add(struct {
		Type string `json:"type"`
		relation
	}{"relation", r})
}

func (f *file) add(record any) error {
	text, err := json.Marshal(record)
	f.lines = append(f.lines, parse(text))
	return err
}

// observe gives the entity of a line other observations. The rest of the line
// keeps its text, fields of other versions too.
func (l *line) observe(observations []json.RawMessage) error {
	value, err := json.Marshal(observations)
	if err != nil {
		return err
	}
	text, err := replaced(l.text, "observations", value)
	if err == nil {
		*l = *parse(text)
	}
	return err
}

// replaced returns an object with another value of a member that it has.
func replaced(object []byte, name string, value []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	from, to := 0, 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var old json.RawMessage
		if err := d.Decode(&old); err != nil {
			return nil, err
		}
		if key == name {
			to = int(d.InputOffset())
			from = to - len(old)
		}
	}
	return slices.Concat(object[:from], value, object[to:]), nil
}
