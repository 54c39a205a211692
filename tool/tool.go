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
	Name    string
	Version string
	Module  string  // path relative to the manifest; empty where Source is set
	Source  *Source // nil where Module is set
	ABI     ABI
	Files   string   // folder relative to the manifest, which the guest sees at [FilesPath]; empty: none
	Args    []string // of the program, after its name
	// Reseeds: after its first read of standard input a program of abi command draws its
	// random numbers anew, so that calls may begin there, from one image.
	Reseeds     bool
	Tools       []Definition // may be empty for modules that describe themselves
	Requests    Requests
	Relaxations Relaxations
	Limits      Limits
	Labels      map[string]string
	Warmup      *Warmup
	// Warnings are one line each, for people: claims that contradict themselves,
	// and requests that are kept but not supported yet.
	Warnings []string

	file   string
	places map[string]position // of the fields of the outermost mapping
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
	// ClientCapabilities are what a client must declare for the tool to be called:
	// some of [ClientCapabilities], sorted; nil: nothing.
	ClientCapabilities []string
}

// Requests is what a package would like to have. It gets what is requested and
// allowed.
type Requests struct {
	Volumes        []VolumeRequest `json:"volumes"`
	KV             bool            `json:"kv"`
	SQL            []string        `json:"sql"`
	HTTP           []HTTPRequest   `json:"http"`
	Services       []string        `json:"services"`
	Outbox         []string        `json:"outbox"` // hosts
	Env            []string        `json:"env"`
	SessionScratch int64           `json:"sessionScratch"` // bytes
	Session        bool            `json:"session"`
	Setup          bool            `json:"setup"`
}

// VolumeRequest asks for a folder at a path of the guest.
type VolumeRequest struct {
	Name   string              `json:"name"`
	Path   string              `json:"path"`   // absolute, clean, not / and not below /tmp or /session
	Access capabilities.Access `json:"access"` // ReadAccess or WriteAccess; NoAccess: what the tools' claims can use
}

// HTTPRequest asks for requests to a host.
type HTTPRequest struct {
	Host    string   `json:"host"`
	Methods []string `json:"methods"`
	Paths   []string `json:"paths"`
	Secret  string   `json:"secret"`
}

// Relaxations are requested exceptions from the additive and idempotent rules;
// none applies before it is approved.
type Relaxations struct {
	Volatile    []string      `json:"volatile"`
	History     []History     `json:"history"`
	Transitions []Transition  `json:"transitions"`
	Recoverable time.Duration `json:"recoverable"`
}

// History is an overwrite whose old bytes are kept under another path.
type History struct {
	Of    string `json:"of"`
	Under string `json:"under"`
}

// Transition is one declared change of a scalar.
type Transition struct {
	At   string `json:"at"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Warmup is a call made before a module is imaged.
type Warmup struct {
	Tool      string
	Arguments json.RawMessage
}

// Limits bound one call. Zero fields of a manifest take the default; the
// operator may lower each.
type Limits struct {
	Memory  int64         `json:"memory"`  // bytes of guest memory; default 64 MiB, at most 1 GiB
	Timeout time.Duration `json:"timeout"` // wall clock; default 5 s, at most 10 min
	Output  int64         `json:"output"`  // bytes of standard output, and of standard error; default 1 MiB, at most 64 MiB
	Fuel    uint64        `json:"fuel"`    // 0: not limited
	Writes  int64         `json:"writes"`  // bytes held in overlays; default 64 MiB, at most 1 GiB
	Files   int64         `json:"files"`   // changed files; default 1000, at most 100000
}

// Package is a manifest with its module.
type Package struct {
	Manifest Manifest
	Dir      string // the folder the manifest was read from
	Module   []byte // a core module
	// Files are the contents of the files of the package by their path below
	// Manifest.Files, slashes only. They are not to be changed.
	Files map[string][]byte
	// ModuleDigest is the SHA-256 of the module, DefinitionDigest that of the
	// manifest in canonical form, FilesDigest that of the files, "" where there are
	// none, Digest that of all; each "sha256:<hex>".
	ModuleDigest, DefinitionDigest, FilesDigest, Digest string
}
