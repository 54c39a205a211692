package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// root is where the volume is; tests move it.
var root = "/data"

func in(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }

// record is one entry of a list. Fields that this version does not know are kept.
type record map[string]json.RawMessage

// text returns a field that is a string; empty where it is not.
func (r record) text(field string) string {
	var s string
	if json.Unmarshal(r[field], &s) != nil {
		return ""
	}
	return s
}

// with sets fields that are strings.
func (r record) with(fields map[string]string) (record, error) {
	for name, value := range fields {
		b, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		r[name] = b
	}
	return r, nil
}

// load returns the records of a file, none where there is no file.
func load(name string) ([]record, error) {
	b, err := os.ReadFile(in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []record
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, r := range list {
		if r == nil {
			return nil, fmt.Errorf("%s: record %d: null", name, i)
		}
	}
	return list, nil
}

func save(name string, list []record) error {
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(in(name), append(b, '\n'), 0o644)
}

// byID returns the record of that id, nil without one.
func byID(list []record, id string) record {
	for _, r := range list {
		if r.text("id") == id {
			return r
		}
	}
	return nil
}

// nextID returns the prefix with the number after the highest: no record is ever
// removed from the lists whose ids are made here.
func nextID(list []record, prefix string) string {
	n := 0
	for _, r := range list {
		id := r.text("id")
		if len(id) <= len(prefix) || id[:len(prefix)] != prefix {
			continue
		}
		if k, err := strconv.Atoi(id[len(prefix):]); err == nil {
			n = max(n, k)
		}
	}
	return prefix + strconv.Itoa(n+1)
}
