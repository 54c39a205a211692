package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

// lockFormat names the form of sandboxd.lock.
const lockFormat = "sandboxd.lock/1"

type lockFile struct {
	Format   string        `json:"format"`
	Packages []lockPackage `json:"packages"`
}

type lockPackage struct {
	Name             string     `json:"name"`
	Package          string     `json:"package"`
	Version          string     `json:"version,omitempty"`
	ABI              tool.ABI   `json:"abi"`
	Digest           string     `json:"digest"`
	ModuleDigest     string     `json:"moduleDigest"`
	DefinitionDigest string     `json:"definitionDigest"`
	FilesDigest      string     `json:"filesDigest,omitempty"`
	Args             []string   `json:"args,omitempty"`
	Reseeds          bool       `json:"reseeds,omitempty"`
	Approved         string     `json:"approved"`
	Requests         []string   `json:"requests"`
	Relaxations      []string   `json:"relaxations"`
	Granted          []string   `json:"granted"`
	Limits           []string   `json:"limits"`
	Labels           []string   `json:"labels"`
	Warmup           []string   `json:"warmup"`
	Tools            []lockTool `json:"tools"`
}

type lockTool struct {
	Name                   string             `json:"name"`
	Title                  string             `json:"title,omitempty"`
	Description            string             `json:"description,omitempty"`
	Annotations            capabilities.Claim `json:"annotations"`
	InputSchema            string             `json:"inputSchema"`
	OutputSchema           string             `json:"outputSchema,omitempty"`
	IdempotencyKeyArgument string             `json:"idempotencyKeyArgument,omitempty"`
	ClientCapabilities     []string           `json:"clientCapabilities,omitempty"`
}

// Lock returns sandboxd.lock: what is trusted, as JSON for review and version
// control. Records that trust the same packages in the same way give the same
// bytes, on any machine: where a package lies and when it was approved is not in
// it, and schemas are there as their SHA-256.
func (s *Store) Lock() ([]byte, error) {
	rs, err := s.Records()
	if err != nil {
		return nil, err
	}
	f := lockFile{Format: lockFormat, Packages: []lockPackage{}}
	for _, r := range rs {
		f.Packages = append(f.Packages, lockOf(r))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	return term.JSON(b.Bytes()), nil
}

func lockOf(r Record) lockPackage {
	list := func(ls []string) []string { return append([]string{}, ls...) }
	p := lockPackage{
		Name: r.Name, Package: r.Package, Version: r.Version, ABI: r.ABI,
		Digest: r.Digest, ModuleDigest: r.ModuleDigest, DefinitionDigest: r.DefinitionDigest, Approved: r.By,
		FilesDigest: r.FilesDigest, Args: r.Args, Reseeds: r.Reseeds,
		Requests: list(requestLines(r.Requests)), Relaxations: list(relaxationLines(r.Relaxations)),
		Granted: list(grantLines(r.Granted)), Limits: limitLines(r.Limits),
		Labels: list(labelLines(r.Labels)), Warmup: list(warmupLines(r.Warmup)),
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, lockTool{
			Name: t.Name, Title: t.Title, Description: t.Description, Annotations: t.Annotations,
			InputSchema: digest(t.InputSchema), OutputSchema: digest(t.OutputSchema),
			IdempotencyKeyArgument: t.IdempotencyKeyArgument,
			ClientCapabilities:     t.ClientCapabilities,
		})
	}
	return p
}

// digest returns the SHA-256 of a schema in sorted form, "" where there is none.
func digest(schema json.RawMessage) string {
	if schema == nil {
		return ""
	}
	h := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(h[:])
}
