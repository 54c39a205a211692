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
	metaKey         = runtime.MetaPrefix + "idempotencyKey" // of a request
)

// entry is one tool as it is served: a package's, or the host's own.
type entry struct {
	name string // what clients call it
	pkg  Package
	tool *runtime.Tool
	own  *hostTool // not nil: a tool of the host's own, and there is no package

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
			if tool.ReservedToolName(e.name) {
				return nil, &ReservedError{Tool: e.name, Package: p.Name()}
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

// ReservedError is a package's tool that clients would take for one of the host's
// own.
type ReservedError struct{ Tool, Package string }

// Error names the tool, the package and the mend.
func (e *ReservedError) Error() string {
	return fmt.Sprintf("tool %s: package %s has it, and names that begin with sandboxd_ are kept for the host's own tools; rename it in its tool.yaml, or give the package another name with `as:` in the configuration", e.Tool, e.Package)
}

// enforcement is what _meta says about a tool.
type enforcement struct {
	Mode         string                 `json:"mode"`
	Declared     capabilities.Claim     `json:"declared"`
	Effective    capabilities.Effective `json:"effective"`
	Enforced     capabilities.Effective `json:"enforced"`
	Relaxations  []string               `json:"relaxations"`
	Policy       runtime.Policy         `json:"policy"`
	Grants       grants                 `json:"grants"`
	ModuleDigest string                 `json:"moduleDigest"`
	PolicyDigest string                 `json:"policyDigest"`
	// ClientCapabilities are what a client must declare to call the tool.
	ClientCapabilities []string `json:"clientCapabilities,omitempty"`
}

// grants is what a call of the tool is given.
type grants struct {
	Volumes        []capabilities.VolumeGrant `json:"volumes"`
	KV             capabilities.Access        `json:"kv,omitempty"`
	Outbox         []string                   `json:"outbox,omitempty"` // hosts
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
		Relaxations: append([]string{}, e.tool.Policy.Relaxations...),
		Policy:      e.tool.Policy,
		Grants: grants{
			Volumes:        append([]capabilities.VolumeGrant{}, e.tool.Grant.Volumes...),
			KV:             e.tool.Grant.KV,
			Outbox:         e.tool.Grant.Outbox,
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
	if e.own != nil {
		return listed(e.name, e.own.definition, e.own.hints), nil
	}
	f, err := e.enforcement()
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	t := listed(e.name, e.tool.Definition, e.tool.Listed)
	t.Meta = mcp.Meta{metaEnforcement: json.RawMessage(meta)}
	return t, nil
}

// listed returns a tool under a name and with its hints.
func listed(name string, d tool.Definition, l capabilities.Effective) *mcp.Tool {
	t := &mcp.Tool{
		Name:        name,
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
	return t
}
