package host

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/tool"
)

// described keeps, in the cache, what modules said of themselves. A record of the
// trust store says the same, but sorts the tools and the keys of their schemas, and
// models read arguments in the order in which the author put them. What it keeps
// counts only where the record agrees with it.
type described struct {
	cache string // folder; empty: nothing is kept
}

func (d described) file(src *tool.Package) string {
	return filepath.Join(d.cache, "described", strings.TrimPrefix(src.Digest, "sha256:")+".json")
}

// of returns the tools on record, as the module put them where that was kept.
func (d described) of(src *tool.Package, record trust.Record) []tool.Definition {
	if d.cache == "" {
		return record.Definitions()
	}
	var pins []trust.ToolPin
	b, err := os.ReadFile(d.file(src))
	if err != nil || json.Unmarshal(b, &pins) != nil {
		return record.Definitions()
	}
	kept := trust.Record{Tools: pins}.Definitions()
	if record.Holds(trust.Candidate{Name: record.Name, Source: record.Source, Package: src, Definitions: kept}) != nil {
		return record.Definitions()
	}
	return kept
}

// keep keeps what a module said of itself, whole or not at all, where that is not
// kept yet.
func (d described) keep(src *tool.Package, definitions []tool.Definition) error {
	if d.cache == "" {
		return nil
	}
	var pins []trust.ToolPin
	for _, d := range definitions {
		pins = append(pins, trust.PinOf(d))
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // schemas stay byte for byte
	if err := e.Encode(pins); err != nil {
		return err
	}
	file := d.file(src)
	if was, err := os.ReadFile(file); err == nil && bytes.Equal(was, text.Bytes()) {
		return nil
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "tmp-")
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
