package tool

// descriptionFile names what a module says about itself in errors.
const descriptionFile = "description"

// ParseDescription parses and validates what a module says about itself:
// {"tools": [...]}, each as in MCP's Tool. It is as strict on names, texts,
// hints and schemas as [ParseManifest]; other fields of Tool (_meta, icons,
// execution) are ignored. Keys that are there twice, or differ by case only
// from each other or from a known field, are refused: the last would win in
// one reader and the first in another. Its errors are [*ManifestError].
func ParseDescription(b []byte) ([]Definition, error) {
	n, err := parseJSON(descriptionFile, b)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: descriptionFile}
	root := d.root(n)
	root.noTwins()
	if d.failed() {
		return nil, d.err
	}
	o := root.open("tools")
	tools := d.definitions(o.required("tools"), false)
	if d.failed() {
		return nil, d.err
	}
	return tools, nil
}
