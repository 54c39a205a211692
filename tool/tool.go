// Package tool is the package format: a manifest, a WebAssembly module, and the
// digests that identify them. A [Package] is inert: parsing and validating run
// no guest code and touch nothing but the package's own files.
package tool

import (
	"encoding/json"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// ABI is how the host talks to a module.
type ABI string

// The ABIs of modules. MCP and Extism are parsed and refused as not supported
// yet.
const (
	Command ABI = "command"
	Reactor ABI = "reactor"
	MCP     ABI = "mcp"
	Extism  ABI = "extism"
)

// Manifest is what tool.yaml says, checked and with defaults filled in.
type Manifest struct {
	Name        string
	Version     string
	Module      string  // path relative to the manifest; empty where Source is set
	Source      *Source // nil where Module is set
	ABI         ABI
	Tools       []Definition // may be empty for modules that describe themselves
	Requests    Requests
	Relaxations Relaxations
	Limits      Limits
	Labels      map[string]string
	Warmup      *Warmup
}

// Source says how the module is built.
type Source struct {
	Language string
	Dir      string // relative to the manifest
}

// Definition is one tool as its author declares it.
type Definition struct {
	Name                   string
	Title                  string
	Description            string
	InputSchema            json.RawMessage // a JSON Schema 2020-12 object, compiles
	OutputSchema           json.RawMessage // nil where there is none
	Claim                  capabilities.Claim
	IdempotencyKeyArgument string
}

// Requests is what a package would like to have. It gets what is requested and
// allowed.
type Requests struct {
	Volumes        []VolumeRequest
	KV             bool
	SQL            []string
	HTTP           []HTTPRequest
	Services       []string
	Outbox         []string // hosts
	Env            []string
	SessionScratch int64 // bytes
	Session        bool
	Setup          bool
}

// VolumeRequest asks for a folder at a path of the guest.
type VolumeRequest struct {
	Name   string
	Path   string              // absolute, clean, not / and not below /tmp or /session
	Access capabilities.Access // ReadAccess or WriteAccess; NoAccess: what the tools' claims can use
}

// HTTPRequest asks for requests to a host.
type HTTPRequest struct {
	Host    string
	Methods []string
	Paths   []string
	Secret  string
}

// Relaxations are requested exceptions from the additive and idempotent rules;
// none applies before it is approved.
type Relaxations struct {
	Volatile    []string
	History     []History
	Transitions []Transition
	Recoverable time.Duration
}

// History is an overwrite whose old bytes are kept under another path.
type History struct{ Of, Under string }

// Transition is one declared change of a scalar.
type Transition struct{ At, From, To string }

// Warmup is a call made before a module is imaged.
type Warmup struct {
	Tool      string
	Arguments json.RawMessage
}

// Limits bound one call. Zero fields of a manifest take the default; the
// operator may lower each.
type Limits struct {
	Memory  int64         // bytes of guest memory; default 64 MiB, at most 1 GiB
	Timeout time.Duration // wall clock; default 5 s, at most 10 min
	Output  int64         // bytes of standard output, and of standard error; default 1 MiB, at most 64 MiB
	Fuel    uint64        // 0: not limited
	Writes  int64         // bytes held in overlays; default 64 MiB, at most 1 GiB
	Files   int64         // changed files; default 1000, at most 100000
}

// Package is a manifest with its module.
type Package struct {
	Manifest Manifest
	Dir      string // the folder the manifest was read from
	Module   []byte // a core module
	// ModuleDigest is the SHA-256 of the module, DefinitionDigest that of the
	// manifest in canonical form, Digest that of both; each "sha256:<hex>".
	ModuleDigest, DefinitionDigest, Digest string
}
