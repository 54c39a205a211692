package verify

import (
	"encoding/json"
	"io/fs"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

// DefaultSeed is the folder of a package that its calls begin with, unless a case
// names another. It holds a folder for each volume, named as the volume is.
const DefaultSeed = "testdata"

// Bounds of a cases file.
const (
	maxCases  = 1000
	maxBefore = 16
	maxNote   = 1024 // bytes
)

// Call is a tool with arguments.
type Call struct {
	Tool      string
	Arguments json.RawMessage // a JSON object
}

// Case is a call that a package's author wants to be tried.
type Case struct {
	Call
	Seed   string // folder of the package, with slashes; default: [DefaultSeed]
	Before []Call // made first, in the same world; they are held to nothing
	Note   string // for people
}

// ParseCases reads a cases file: a list of cases, JSON where the name ends in
// .json, else YAML. file names it in errors, which are all a [*strictyaml.Error].
func ParseCases(file string, text []byte) ([]Case, error) {
	parse := strictyaml.ParseYAML
	if strings.HasSuffix(file, ".json") {
		parse = strictyaml.ParseJSON
	}
	root, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	d := strictyaml.NewDecoder(file)
	items := d.Root(root).Each("write a list: - {tool: add_note, arguments: {title: Milk}}")
	if len(items) > maxCases {
		d.Root(root).Fail("has more than 1000 cases", "remove some")
	}
	var cases []Case
	for _, item := range items {
		if d.Failed() {
			break
		}
		cases = append(cases, parseCase(item))
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return cases, nil
}

func parseCase(v strictyaml.Value) Case {
	o := v.Object("tool", "arguments", "seed", "before", "note")
	c := Case{Call: parseCall(o), Seed: DefaultSeed}
	if seed := o.Field("seed"); seed.Present() {
		c.Seed = seed.Pattern(validSeed, "write a folder of the package, for example testdata/full")
	}
	before := o.Field("before")
	calls := before.Each("write a list: [{tool: add_note, arguments: {title: Milk}}]")
	if len(calls) > maxBefore {
		before.Fail("has more than 16 calls", "remove some, or put what they leave into a seed")
		return c
	}
	for _, b := range calls {
		c.Before = append(c.Before, parseCall(b.Object("tool", "arguments")))
	}
	c.Note = o.Field("note").Shown(maxNote, false, "write one line")
	return c
}

func parseCall(o strictyaml.Value) Call {
	c := Call{
		Tool:      o.Required("tool").Pattern(tool.ValidToolName, "write the name of a tool of the package"),
		Arguments: json.RawMessage("{}"),
	}
	arguments := o.Field("arguments")
	if arguments.Is(strictyaml.Map, "write a mapping, {} where there are none") {
		c.Arguments = arguments.Node.JSON(false)
	}
	return c
}

// validSeed reports whether s is a folder below the package's.
func validSeed(s string) bool {
	return fs.ValidPath(s) && s != "." && len(s) <= maxNote && !strings.Contains(s, `\`) && strictyaml.HiddenIn(s) == ""
}
