package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// definitionFormat names the canonical form below. A change of the form is a
// change of every digest that operators approved, so it gets a new name.
const definitionFormat = "sandboxd.definition/1"

// canonical is a manifest as it is hashed: what the author declares and
// requests, defaults filled in. Where the module comes from is not part of it,
// since the module itself is hashed; warnings are for people.
type canonical struct {
	Format      string            `json:"format"`
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	ABI         ABI               `json:"abi"`
	Tools       []canonicalTool   `json:"tools"`
	Requests    Requests          `json:"requests"`
	Relaxations Relaxations       `json:"relaxations"`
	Limits      Limits            `json:"limits"`
	Labels      map[string]string `json:"labels"`
	Warmup      *canonicalWarmup  `json:"warmup"`
	// Younger than the form, see canonicalTool. What the files hold is hashed apart.
	Args    []string `json:"args,omitempty"`
	Reseeds bool     `json:"reseeds,omitempty"`
}

type canonicalTool struct {
	Name                   string             `json:"name"`
	Title                  string             `json:"title"`
	Description            string             `json:"description"`
	InputSchema            json.RawMessage    `json:"inputSchema"`
	OutputSchema           json.RawMessage    `json:"outputSchema"`
	Annotations            capabilities.Claim `json:"annotations"`
	IdempotencyKeyArgument string             `json:"idempotencyKeyArgument"`
	// Younger than the form: left out where it is empty, so that the digests of
	// packages without it stay as they were approved.
	ClientCapabilities []string `json:"clientCapabilities,omitempty"`
}

type canonicalWarmup struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Canonical returns the manifest in the form that is hashed: JSON without
// white space, mappings sorted by key, lists in the author's order, defaults
// filled in. Manifests that differ in comments, formatting, key order or in
// defaults written out have the same form.
func (m *Manifest) Canonical() ([]byte, error) {
	c := canonical{
		Format: definitionFormat, Name: m.Name, Version: m.Version, ABI: m.ABI, Tools: []canonicalTool{},
		Requests: m.Requests, Relaxations: m.Relaxations, Limits: m.Limits, Labels: m.Labels,
		Args: m.Args, Reseeds: m.Reseeds,
	}
	var err error
	for _, t := range m.Tools {
		ct := canonicalTool{
			Name: t.Name, Title: t.Title, Description: t.Description,
			Annotations: t.Claim, IdempotencyKeyArgument: t.IdempotencyKeyArgument,
			ClientCapabilities: t.ClientCapabilities,
		}
		if ct.InputSchema, err = sortedJSON(t.InputSchema); err != nil {
			return nil, fmt.Errorf("tool %s: inputSchema: %w", t.Name, err)
		}
		if ct.OutputSchema, err = sortedJSON(t.OutputSchema); err != nil {
			return nil, fmt.Errorf("tool %s: outputSchema: %w", t.Name, err)
		}
		c.Tools = append(c.Tools, ct)
	}
	if m.Warmup != nil {
		c.Warmup = &canonicalWarmup{Tool: m.Warmup.Tool}
		if c.Warmup.Arguments, err = sortedJSON(m.Warmup.Arguments); err != nil {
			return nil, fmt.Errorf("warmup: arguments: %w", err)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// sortedJSON returns JSON with its keys sorted; nil stays nil.
func sortedJSON(b json.RawMessage) (json.RawMessage, error) {
	if b == nil {
		return nil, nil
	}
	n, err := strictyaml.ParseJSON("schema", b)
	if err != nil {
		return nil, err
	}
	return n.JSON(true), nil
}

// digest sets the digests of a package whose manifest, module and files are set.
func (p *Package) digest() error {
	def, err := p.Manifest.Canonical()
	if err != nil {
		return err
	}
	p.ModuleDigest = sum(p.Module)
	p.DefinitionDigest = sum(def)
	whole := "sandboxd.package/1\n" + p.DefinitionDigest + "\n" + p.ModuleDigest + "\n"
	if p.FilesDigest = filesDigest(p.Files); p.FilesDigest != "" {
		whole += p.FilesDigest + "\n"
	}
	p.Digest = sum([]byte(whole))
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}
