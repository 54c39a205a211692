package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

// Candidate is a package that asks to be served.
type Candidate struct {
	Name    string // as served: the package's own name, or the operator's "as"
	Source  string // absolute path, or oci:// reference
	Package *tool.Package
	// Definitions are the tools in force: what the module says of itself. Nil:
	// those of the manifest.
	Definitions []tool.Definition
}

// ErrCandidate is matched under errors.Is by the errors of a candidate that
// cannot be judged: without a valid name, a package or tools.
var ErrCandidate = errors.New("package cannot be pinned")

const maxTools = 256 // of a package, as in a manifest

// check refuses what has no place in the store.
func (c Candidate) check() error {
	switch {
	case !tool.ValidPackageName(c.Name):
		return fmt.Errorf("%w: its name %q is not 1 to 64 lower-case letters, digits and hyphens; set as: in the configuration", ErrCandidate, clip(term.Line(c.Name)))
	case c.Package == nil:
		return fmt.Errorf("%w: %s was not read", ErrCandidate, c.Name)
	case !digestPattern.MatchString(c.Package.ModuleDigest), !digestPattern.MatchString(c.Package.DefinitionDigest), !digestPattern.MatchString(c.Package.Digest):
		return fmt.Errorf("%w: %s has no digests", ErrCandidate, c.Name)
	case len(c.definitions()) > maxTools:
		return fmt.Errorf("%w: %s has more than %d tools", ErrCandidate, c.Name, maxTools)
	}
	return nil
}

// complete is check where the tools have to be known.
func (c Candidate) complete() error {
	if err := c.check(); err != nil {
		return err
	}
	ds := c.definitions()
	if len(ds) == 0 {
		return fmt.Errorf("%w: the tools of %s are not known yet", ErrCandidate, c.Name)
	}
	seen := make(map[string]bool, len(ds))
	for _, d := range ds {
		if !tool.ValidToolName(d.Name) || seen[d.Name] {
			return fmt.Errorf("%w: %s has a tool %q whose name is not valid or there twice", ErrCandidate, c.Name, clip(term.Line(d.Name)))
		}
		seen[d.Name] = true
	}
	return nil
}

func (c Candidate) definitions() []tool.Definition {
	if c.Definitions != nil || c.Package == nil {
		return c.Definitions
	}
	return c.Package.Manifest.Tools
}

// remote reports whether the package comes from a registry, where the first use
// is nobody's decision.
func (c Candidate) remote() bool { return strings.HasPrefix(c.Source, "oci://") }

// pins returns the tools as they are recorded: sorted by name, since a module
// may list them in any order.
func (c Candidate) pins() ([]ToolPin, error) {
	ds := c.definitions()
	pins := make([]ToolPin, 0, len(ds))
	for _, d := range ds {
		p := PinOf(d)
		var err error
		if p.InputSchema, err = sorted(d.InputSchema); err != nil {
			return nil, fmt.Errorf("tool %s: inputSchema: %w", term.Line(d.Name), err)
		}
		if p.OutputSchema, err = sorted(d.OutputSchema); err != nil {
			return nil, fmt.Errorf("tool %s: outputSchema: %w", term.Line(d.Name), err)
		}
		pins = append(pins, p)
	}
	slices.SortFunc(pins, func(a, b ToolPin) int { return strings.Compare(a.Name, b.Name) })
	return pins, nil
}

// clip cuts text of which others decide how long it is.
func clip(s string) string {
	const most = 120
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
