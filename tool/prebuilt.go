package tool

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// sourceKey finds the field at the start of a line, where only the outermost
// mapping has its keys.
var sourceKey = regexp.MustCompile(`(?m)^(source|"source"|'source')[ \t]*:`)

// Prebuilt returns the text of the package's manifest with module, a file name,
// in place of its source, for a folder that is used without a builder. Comments
// stay. The manifest says the same otherwise, so the package's digests are those
// of p.
func (p *Package) Prebuilt(module string) ([]byte, error) {
	root, err := regular.Folder(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", p.Dir, pathless(err))
	}
	defer root.Close()
	file := filepath.Join(p.Dir, manifestName)
	text, err := read(root, manifestName, strictyaml.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	at := sourceKey.FindIndex(text)
	if at == nil {
		return nil, p.Manifest.Fault("source", "is not a line of its own", "write source: {language: go, dir: .} at the start of a line", nil)
	}
	text = append(append(text[:at[0]:at[0]], "module: "+strictyaml.Quote(module)+"\n"...), afterField(text[at[0]:])...)
	m, err := ParseManifest(file, text)
	if err != nil {
		return nil, fmt.Errorf("without its source: %w", err)
	}
	want, err := p.Manifest.Canonical()
	if err != nil {
		return nil, err
	}
	got, err := m.Canonical()
	if err != nil {
		return nil, err
	}
	if m.Module != module || !bytes.Equal(got, want) {
		return nil, fmt.Errorf("%s: changed since it was read; build again", file)
	}
	return text, nil
}

// afterField returns what follows the first field of a block mapping: from the
// next key on, with the comments and blank lines before that.
func afterField(text []byte) []byte {
	rest, _ := cutLine(text)
	for at := rest; len(at) > 0; {
		line := at
		at, line = cutLine(at)
		switch content := strings.TrimSpace(string(line)); {
		case content == "" || content[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			rest = at
		default:
			return rest
		}
	}
	return rest
}

func cutLine(text []byte) (rest, line []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return rest, line
}
