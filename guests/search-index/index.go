package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// root is a variable so that tests can move it.
var root = "/data/indexes"

// rebuilding is the state of an index that was wiped; others are "ready".
const rebuilding = "rebuilding"

type index struct {
	Tenant    string     `json:"tenant"`
	State     string     `json:"state"`
	Documents []document `json:"documents"`
	Notes     []string   `json:"notes"`
}

type document struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Terms []string `json:"terms"` // sorted
}

// index adds the terms of the text that are missing and returns how many.
func (d *document) index() int {
	before := len(d.Terms)
	for _, w := range strings.FieldsFunc(strings.ToLower(d.Text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if i, found := slices.BinarySearch(d.Terms, w); !found {
			d.Terms = slices.Insert(d.Terms, i, w)
		}
	}
	return len(d.Terms) - before
}

var indexName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

func file(name string) string { return filepath.Join(root, name+".json") }

// names returns the names of the indexes, sorted.
func names() ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ns []string
	for _, e := range entries {
		if n, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			ns = append(ns, n)
		}
	}
	return ns, err
}

// load refuses an index with fields it does not know: saving it would lose
// them.
func load(name string) (*index, error) {
	if !indexName.MatchString(name) {
		return nil, fmt.Errorf("index name %q: want a-z, 0-9 and -", name)
	}
	b, err := os.ReadFile(file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("index %s: not found", name)
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var x index
	if err := d.Decode(&x); err != nil {
		return nil, fmt.Errorf("index %s: %w", name, err)
	}
	return &x, nil
}

func save(name string, x *index) error {
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file(name), append(b, '\n'), 0o644)
}

func remove(name string) error { return os.Remove(file(name)) }
