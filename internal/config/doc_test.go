package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// rows returns the rows of the page's tables that have so many cells, by key.
func rows(t *testing.T, cells int) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(page(t)) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) != cells+2 || !strings.HasPrefix(row[1], " `") {
			continue
		}
		for i := range row {
			row[i] = strings.Trim(row[i], " `")
		}
		if _, twice := rows[row[1]]; twice {
			t.Errorf("the page has %s twice", row[1])
		}
		rows[row[1]] = row[1:]
	}
	return rows
}

// The page has each key that is read, each that is refused as not supported
// yet, and no other.
func TestPageKeys(t *testing.T) {
	for _, tt := range []struct {
		rows  map[string][]string
		known map[string][]string
	}{{rows(t, 4), fieldsOf}, {rows(t, 2), laterOf}} {
		known := map[string]bool{}
		for at, fields := range tt.known {
			for _, f := range fields {
				known[strings.TrimPrefix(at+"."+f, ".")] = true
			}
		}
		for f := range known {
			if _, ok := tt.rows[f]; !ok {
				t.Errorf("the page does not describe %s", f)
			}
		}
		for f := range tt.rows {
			if !known[f] {
				t.Errorf("the page describes %s, which is no key", f)
			}
		}
	}
}

// written returns a document that sets one key, and whether the key is in a
// mapping of its own.
func written(key, value string) string {
	at, last, ok := strings.Cut(key, ".")
	if !ok {
		return key + ": " + value
	}
	if at == "packages[]" {
		doc := written(last, value)
		if strings.HasPrefix(last, "source") {
			return "packages: [{" + doc + "}]"
		}
		return "packages: [{source: p, " + doc + "}]"
	}
	return at + ": {" + written(last, value) + "}"
}

// The page's defaults are those that hold: written out they change nothing.
func TestPageDefaults(t *testing.T) {
	tried := 0
	for key, row := range rows(t, 4) {
		value := row[2]
		switch {
		case value == "", value == "none", value == "see below", strings.Contains(value, " "), strings.HasPrefix(value, "limits."), key == "traces.sample":
			continue
		}
		doc := written(key, value)
		c, err := Parse("/d/c.yaml", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		want := Default()
		if strings.HasPrefix(key, "packages[]") {
			if want, err = Parse("/d/c.yaml", []byte("packages: [{source: p}]")); err != nil {
				t.Fatal(err)
			}
		}
		if got := show(c); got != show(want) {
			t.Errorf("%s is not the default:\n%s\n%s", doc, got, show(want))
		}
		tried++
	}
	if tried < 15 {
		t.Errorf("%d defaults: the page is not read right", tried)
	}
}

// The page's greatest numbers are taken, and greater ones are not.
func TestPageMost(t *testing.T) {
	tried := 0
	for key, row := range rows(t, 4) {
		most, ok := strictyaml.ParseSize(row[3])
		d, isTime := strictyaml.ParseDuration(row[3])
		if row[3] == "" || !ok && !isTime || key == "traces.sample" || lists[key] {
			continue
		}
		more := strings.TrimSuffix(row[3], "GiB") + "1GiB"
		if isTime {
			more = (d + 1).String()
		} else if most < 1<<20 {
			more = row[3] + "0"
		}
		if _, err := Parse("f", []byte(written(key, row[3]))); err != nil {
			t.Errorf("%s: %s is refused: %v", key, row[3], err)
		}
		if _, err := Parse("f", []byte(written(key, more))); err == nil {
			t.Errorf("%s: %s is accepted", key, more)
		}
		tried++
	}
	if tried < 15 {
		t.Errorf("%d numbers: the page is not read right", tried)
	}
}

// lists are keys whose number says how many there may be, see [TestTooMany].
var lists = map[string]bool{
	"packages[].outbox": true, "packages[].appendOnly": true, "packages[].volatileFiles": true, "packages[].relaxations": true,
	"packages[].replay": true, "packages[].commitOnError": true, "hostTools": true,
	"packages": true, "principals": true, "packages[].volumes": true, "packages[].env": true, "packages[].optionalWrites": true,
}

// Each YAML block of the page is a configuration.
func TestPageExamples(t *testing.T) {
	blocks := strings.Split(page(t), "```yaml\n")[1:]
	for _, b := range blocks {
		doc, _, _ := strings.Cut(b, "```")
		if _, err := Parse("docs/configuration.md", []byte(doc)); err != nil {
			t.Errorf("%v\n%s", err, doc)
		}
	}
	if len(blocks) == 0 {
		t.Error("the page has no example")
	}
}

func TestPageNotSupported(t *testing.T) {
	for key := range rows(t, 2) {
		doc := strings.NewReplacer("volumes: {*: {label: x}}", "volumes: {data: {label: x}}").Replace(written(key, "x"))
		if _, err := Parse("f", []byte(doc)); !errors.Is(err, tool.ErrNotSupported) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}
