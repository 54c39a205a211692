package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// The project's keys in _meta.
const (
	metaEnforcement = runtime.MetaPrefix + "enforcement"
	metaCall        = runtime.MetaPrefix + "call"
	metaViolation   = runtime.MetaPrefix + "violation"
)

// entry is one tool as it is served.
type entry struct {
	name string // what clients call it
	pkg  Package
	tool *runtime.Tool

	listed *mcp.Tool // as tools/list carries it
	wire   []byte    // its JSON
}

// entries returns the packages' tools under the names that clients use.
func entries(ps []Package) ([]*entry, error) {
	owners := map[string]int{}
	for _, p := range ps {
		for _, t := range p.Tools() {
			owners[t.Definition.Name]++
		}
	}
	var es []*entry
	seen := map[string]*entry{}
	for _, p := range ps {
		for _, t := range p.Tools() {
			e := &entry{name: t.Definition.Name, pkg: p, tool: t}
			if owners[e.name] > 1 && p.Name() != p.Source().Manifest.Name {
				e.name = p.Name() + "_" + e.name
			}
			folded := strings.ToLower(e.name) // names that differ by case alone are told apart by nobody
			if o := seen[folded]; o != nil {
				return nil, &CollisionError{Tool: o.name, Packages: [2]string{o.pkg.Name(), p.Name()}}
			}
			if !tool.ValidToolName(e.name) {
				return nil, fmt.Errorf("package %s: tool %q: name is not of letters, digits, _ . - and 1 to 128 long", p.Name(), e.name)
			}
			seen[folded] = e
			es = append(es, e)
		}
	}
	return es, nil
}

// CollisionError is two tools that clients could not tell apart.
type CollisionError struct {
	Tool     string    // the name of both, but for case
	Packages [2]string // their packages; the same where two packages have one name
}

// Error names the tool, the packages and the mend.
func (e *CollisionError) Error() string {
	const mend = "give one another name with `as:` in the configuration, rename one in its tool.yaml, or serve them apart"
	if e.Packages[0] == e.Packages[1] {
		return fmt.Sprintf("tool %s: two packages are named %s; %s", e.Tool, e.Packages[0], mend)
	}
	return fmt.Sprintf("tool %s: packages %s and %s both have it; %s", e.Tool, e.Packages[0], e.Packages[1], mend)
}

// enforcement is what _meta says about a tool.
type enforcement struct {
	Mode         string                 `json:"mode"`
	Declared     capabilities.Claim     `json:"declared"`
	Effective    capabilities.Effective `json:"effective"`
	Enforced     capabilities.Effective `json:"enforced"`
	Relaxations  []string               `json:"relaxations"`
	Grants       grants                 `json:"grants"`
	ModuleDigest string                 `json:"moduleDigest"`
	PolicyDigest string                 `json:"policyDigest"`
	// ClientCapabilities are what a client must declare to call the tool.
	ClientCapabilities []string `json:"clientCapabilities,omitempty"`
}

// grants is what a call of the tool is given.
type grants struct {
	Volumes        []capabilities.VolumeGrant `json:"volumes"`
	OptionalWrites []string                   `json:"optionalWrites,omitempty"`
}

// enforcement returns what is enforced on the tool. Its policy digest covers
// all that decides about a call but the module.
func (e *entry) enforcement() (enforcement, error) {
	f := enforcement{
		Mode:        e.tool.Grant.Mode.String(),
		Declared:    e.tool.Definition.Claim,
		Effective:   e.tool.Effective,
		Enforced:    e.tool.Listed,
		Relaxations: []string{},
		Grants: grants{
			Volumes:        append([]capabilities.VolumeGrant{}, e.tool.Grant.Volumes...),
			OptionalWrites: e.tool.Grant.OptionalWrites,
		},
		ClientCapabilities: e.tool.Definition.ClientCapabilities,
	}
	b, err := json.Marshal(struct {
		Enforcement enforcement
		Limits      tool.Limits
	}{f, e.pkg.Source().Manifest.Limits})
	if err != nil {
		return enforcement{}, err
	}
	sum := sha256.Sum256(b)
	f.PolicyDigest = "sha256:" + hex.EncodeToString(sum[:])
	f.ModuleDigest = e.pkg.Source().ModuleDigest
	return f, nil
}

// listing returns the tool as tools/list carries it: all four hints, with the
// values that are enforced.
func (e *entry) listing() (*mcp.Tool, error) {
	f, err := e.enforcement()
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	d, l := e.tool.Definition, e.tool.Listed
	t := &mcp.Tool{
		Meta:        mcp.Meta{metaEnforcement: json.RawMessage(meta)},
		Name:        e.name,
		Title:       d.Title,
		Description: d.Description,
		InputSchema: d.InputSchema,
		Annotations: &mcp.ToolAnnotations{
			Title:           d.Title,
			ReadOnlyHint:    l.ReadOnly,
			DestructiveHint: &l.Destructive,
			IdempotentHint:  l.Idempotent,
			OpenWorldHint:   &l.OpenWorld,
		},
	}
	if len(d.InputSchema) == 0 {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if len(d.OutputSchema) > 0 {
		t.OutputSchema = d.OutputSchema
	}
	return t, nil
}
