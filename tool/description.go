package tool

import (
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// descriptionFile names what a module says about itself in errors.
const descriptionFile = "description"

// ParseDescription parses and validates what a module says about itself:
// {"tools": [...]}, each as in MCP's Tool. It is as strict on names, texts,
// hints and schemas as [ParseManifest]; other fields of Tool (_meta, icons,
// execution) are ignored. Keys that are there twice, or differ by case only
// from each other or from a known field, are refused: the last would win in
// one reader and the first in another. Its errors are [*ManifestError].
func ParseDescription(b []byte) ([]Definition, error) {
	n, err := strictyaml.ParseJSON(descriptionFile, b)
	if err != nil {
		return nil, err
	}
	d := &decoder{Decoder: strictyaml.NewDecoder(descriptionFile), patterns: patterns{uncompiled: true}}
	root := d.Root(n)
	root.NoTwins()
	if d.Failed() {
		return nil, d.Err()
	}
	o := root.Open("tools")
	tools := d.definitions(o.Required("tools"), false)
	if d.Failed() {
		return nil, d.Err()
	}
	return tools, nil
}
