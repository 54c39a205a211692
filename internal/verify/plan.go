package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

// call is one call that is to be made.
type call struct {
	Case
	id string // what the report calls it; distinct among those of its tool
}

// caseFiles are the names of the cases file beside a manifest.
var caseFiles = []string{"cases.json", "cases.yaml"}

// ErrCases: the cases do not fit the package.
var ErrCases = errors.New("cases")

// readCases returns the cases of a package and the file that they are in; none
// where there is no file.
func (w *worlds) readCases() ([]Case, string, error) {
	if name := w.options.Cases; name != "" {
		dir, base := filepath.Split(name)
		if dir == "" {
			dir = "."
		}
		root, err := regular.Folder(dir)
		if err != nil {
			return nil, name, fmt.Errorf("%w %s: %w", ErrCases, name, err)
		}
		defer root.Close()
		text, err := regular.Read(root, base, strictyaml.MaxDocument)
		if err != nil {
			return nil, name, fmt.Errorf("%w %s: %w", ErrCases, name, err)
		}
		cases, err := ParseCases(name, text)
		return cases, name, err
	}
	var found []Case
	file := ""
	for _, base := range caseFiles {
		text, err := regular.Read(w.folder, base, strictyaml.MaxDocument)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name := filepath.Join(w.options.Folder, base)
		if err != nil {
			return nil, name, fmt.Errorf("%w %s: %w", ErrCases, name, err)
		}
		if file != "" {
			return nil, name, fmt.Errorf("%w: %s and %s; name one with --cases", ErrCases, file, base)
		}
		if found, err = ParseCases(name, text); err != nil {
			return nil, name, err
		}
		file = name
	}
	return found, file, nil
}

// plan returns the calls of each tool, in the order of the definitions, and the
// file of cases that some of them are from.
func (w *worlds) plan() (map[string][]*call, string, error) {
	cases, file, err := w.readCases()
	if err != nil {
		return nil, file, err
	}
	definitions := w.source.Manifest.Tools
	known := func(name string) bool {
		return slices.ContainsFunc(definitions, func(d tool.Definition) bool { return d.Name == name })
	}
	calls := map[string][]*call{}
	for i, c := range cases {
		for _, x := range append([]Call{c.Call}, c.Before...) {
			if !known(x.Tool) {
				return nil, file, fmt.Errorf("%w: %s: case %d: the package has no tool %s; it has %s", ErrCases, file, i+1, x.Tool,
					strings.Join(toolNames(definitions), ", "))
			}
		}
		if err := w.checkSeed(c.Seed); err != nil {
			return nil, file, fmt.Errorf("%w: %s: case %d: seed %s: %w", ErrCases, file, i+1, c.Seed, err)
		}
		calls[c.Tool] = append(calls[c.Tool], &call{c, fmt.Sprintf("case-%d", i+1)})
	}
	w.generate(calls)
	return calls, file, nil
}

// generate adds the calls that the input schemas suggest.
func (w *worlds) generate(calls map[string][]*call) {
	for _, d := range w.source.Manifest.Tools {
		for _, made := range candidates(d.InputSchema) {
			same := func(c *call) bool {
				return bytes.Equal(c.Arguments, made.arguments) && c.Seed == DefaultSeed && len(c.Before) == 0
			}
			if !slices.ContainsFunc(calls[d.Name], same) {
				c := Case{Call: Call{d.Name, made.arguments}, Seed: DefaultSeed}
				calls[d.Name] = append(calls[d.Name], &call{c, made.id})
			}
		}
	}
}

// checkSeed refuses a seed that a case names and that is not there.
func (w *worlds) checkSeed(folder string) error {
	if folder == DefaultSeed {
		return nil
	}
	root, err := regular.Subfolder(w.folder, filepath.FromSlash(folder))
	if err != nil {
		return err
	}
	return root.Close()
}

func toolNames(ds []tool.Definition) []string {
	var names []string
	for _, d := range ds {
		names = append(names, d.Name)
	}
	return names
}
