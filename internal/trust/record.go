package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

// recordFormat names the form of a record's file.
const recordFormat = "sandboxd.trust/1"

// maxRecord bounds a record's file, in bytes: a manifest of 1 MiB of which each
// byte is escaped is below it.
const maxRecord = 16 << 20

// How a package came to be trusted.
const (
	ByFirstUse     = "first use"
	ByApprove      = "approve"
	ByTrustChanges = "trust changes"
)

// Record is a package as it is trusted.
type Record struct {
	Format           string            `json:"format"`
	Name             string            `json:"name"`    // as served
	Package          string            `json:"package"` // the package's own name
	Version          string            `json:"version"`
	ABI              tool.ABI          `json:"abi"`
	Source           string            `json:"source"` // where it was when it was recorded
	Digest           string            `json:"digest"` // of the definition, the module and the files
	ModuleDigest     string            `json:"moduleDigest"`
	DefinitionDigest string            `json:"definitionDigest"`      // of the manifest
	FilesDigest      string            `json:"filesDigest,omitempty"` // "" where there are none
	Args             []string          `json:"args,omitempty"`
	Reseeds          bool              `json:"reseeds,omitempty"`
	Tools            []ToolPin         `json:"tools"` // sorted by name
	Requests         tool.Requests     `json:"requests"`
	Relaxations      tool.Relaxations  `json:"relaxations"`
	Limits           tool.Limits       `json:"limits"`
	Labels           map[string]string `json:"labels"`
	Warmup           *Warmup           `json:"warmup"`
	Granted          Grants            `json:"granted"`
	Approved         time.Time         `json:"approved"` // UTC, whole seconds
	By               string            `json:"by"`       // ByFirstUse, ByApprove or ByTrustChanges
}

// ToolPin is what a tool says of itself.
type ToolPin struct {
	Name                   string             `json:"name"`
	Title                  string             `json:"title"`
	Description            string             `json:"description"`
	Annotations            capabilities.Claim `json:"annotations"`
	InputSchema            json.RawMessage    `json:"inputSchema"`
	OutputSchema           json.RawMessage    `json:"outputSchema,omitempty"` // nil where there is none
	IdempotencyKeyArgument string             `json:"idempotencyKeyArgument"`
	ClientCapabilities     []string           `json:"clientCapabilities,omitempty"` // sorted; nil where there are none
}

// equal compares pins; their schemas are in sorted form.
func (p ToolPin) equal(q ToolPin) bool {
	return p.Name == q.Name && p.Title == q.Title && p.Description == q.Description && p.Annotations == q.Annotations &&
		p.IdempotencyKeyArgument == q.IdempotencyKeyArgument && slices.Equal(p.ClientCapabilities, q.ClientCapabilities) &&
		bytes.Equal(p.InputSchema, q.InputSchema) && bytes.Equal(p.OutputSchema, q.OutputSchema)
}

// Warmup is a call made before a module is imaged.
type Warmup struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Grants are the requests that a first use does not grant: they take effect when
// they are approved, or where the configuration gives them. The zero value
// grants none.
type Grants struct {
	HTTP        []tool.HTTPRequest `json:"http"` // with the secrets they name
	Outbox      []string           `json:"outbox"`
	Services    []string           `json:"services"`
	Env         []string           `json:"env"`
	Setup       bool               `json:"setup"`
	Relaxations tool.Relaxations   `json:"relaxations"`
}

// newRecord returns the record of a candidate, granting nothing.
func newRecord(c Candidate) (Record, error) {
	m := &c.Package.Manifest
	pins, err := c.pins()
	if err != nil {
		return Record{}, fmt.Errorf("package %s: %w", c.Name, err)
	}
	r := Record{
		Format: recordFormat, Name: c.Name, Package: m.Name, Version: m.Version, ABI: m.ABI, Source: c.Source,
		Digest: c.Package.Digest, ModuleDigest: c.Package.ModuleDigest, DefinitionDigest: c.Package.DefinitionDigest,
		FilesDigest: c.Package.FilesDigest, Args: m.Args, Reseeds: m.Reseeds,
		Tools: pins, Requests: m.Requests, Relaxations: m.Relaxations, Limits: m.Limits, Labels: m.Labels,
	}
	if m.Warmup != nil {
		r.Warmup = &Warmup{Tool: m.Warmup.Tool}
		if r.Warmup.Arguments, err = sorted(m.Warmup.Arguments); err != nil {
			return Record{}, fmt.Errorf("package %s: warmup: arguments: %w", c.Name, err)
		}
	}
	return r, nil
}

// requested returns all that could be granted to the package.
func (r *Record) requested() Grants {
	q := r.Requests
	return Grants{
		HTTP: q.HTTP, Outbox: q.Outbox, Services: q.Services, Env: q.Env, Setup: q.Setup, Relaxations: r.Relaxations,
	}
}

// stamp says when and how the record came to be.
func (r Record) stamp(by string, granted Grants, now time.Time) Record {
	r.By, r.Granted, r.Approved = by, granted, now.UTC().Truncate(time.Second)
	return r
}

// encode returns the record's file: one line of JSON.
func (r *Record) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	out := term.JSON(b.Bytes())
	if len(out) > maxRecord {
		return nil, fmt.Errorf("larger than %d MiB", maxRecord>>20)
	}
	return out, nil
}

// decode reads a record's file. A file that is not, byte for byte, what encode
// writes for what was read is refused: something else wrote it, or a part is
// missing.
func decode(b []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Record{}, errors.New("ends too early")
		}
		return Record{}, fmt.Errorf("not a record: %s", clip(term.Line(err.Error())))
	}
	if err := r.check(); err != nil {
		return Record{}, err
	}
	again, err := r.encode()
	if err != nil {
		return Record{}, err
	}
	if !bytes.Equal(b, again) {
		return Record{}, errors.New("not in the form that sandboxd writes")
	}
	return r, nil
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (r *Record) check() error {
	switch {
	case r.Format != recordFormat:
		return fmt.Errorf("format %q, want %s", clip(term.Line(r.Format)), recordFormat)
	case !tool.ValidPackageName(r.Name) || !tool.ValidPackageName(r.Package):
		return errors.New("not a valid name")
	case !digestPattern.MatchString(r.Digest), !digestPattern.MatchString(r.ModuleDigest), !digestPattern.MatchString(r.DefinitionDigest):
		return errors.New("not a SHA-256 digest")
	case r.Approved.IsZero() || r.Approved.Location() != time.UTC:
		return errors.New("no time of approval")
	case r.By != ByFirstUse && r.By != ByApprove && r.By != ByTrustChanges:
		return errors.New("not known how it was approved")
	case len(r.Tools) == 0 || len(r.Tools) > maxTools:
		return fmt.Errorf("%d tools, want 1 to %d", len(r.Tools), maxTools)
	}
	for i, t := range r.Tools {
		if !tool.ValidToolName(t.Name) || i > 0 && r.Tools[i-1].Name >= t.Name {
			return errors.New("tools without a valid name, or not sorted")
		}
		if slices.ContainsFunc(t.ClientCapabilities, func(name string) bool { return !slices.Contains(tool.ClientCapabilities(), name) }) {
			return errors.New("not a capability of a client")
		}
	}
	return nil
}

// sorted returns JSON without white space, its keys sorted and its numbers as
// they were; nil stays nil.
func sorted(b json.RawMessage) (json.RawMessage, error) {
	if b == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	// As in a record's file, so that what was read compares.
	return term.JSON(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}
