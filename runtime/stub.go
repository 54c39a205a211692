package runtime

// STUB: signatures that others compile against.

import (
	"context"
	"errors"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// Options of an [Engine].
type Options struct {
	Cache    string // folder of compiled modules; empty: none on disk
	State    string // folder of managed volumes; empty: packages that request one and get no folder are refused
	Observer Observer
}

// Engine runs tools. It is safe for concurrent use.
type Engine struct{}

// New returns an engine. Close it.
func New(ctx context.Context, o Options) (*Engine, error) { return nil, errors.New("stub") }

// Close ends all instances. Calls that still run are stopped.
func (e *Engine) Close(ctx context.Context) error { return nil }

// Binding is what the operator gives a package.
type Binding struct {
	As      string            // the package's name here; empty: its own
	Folders map[string]string // host folder by volume name; a volume that is not listed is managed
}

// Load compiles a package, describes its tools and returns it ready to be
// called. No tool's code runs, but a module's start function, its _initialize
// and its description do, with nothing granted.
func (e *Engine) Load(ctx context.Context, p *tool.Package, b Binding) (*Package, error) {
	return nil, errors.New("stub")
}

// Package is a loaded package.
type Package struct{}

// Name returns the name that the operator gave it, or its own.
func (p *Package) Name() string { return "" }

// Source returns the inert package.
func (p *Package) Source() *tool.Package { return nil }

// Tools returns the tools in the order in which the package defines them.
func (p *Package) Tools() []*Tool { return nil }

// Tool returns the tool of that name.
func (p *Package) Tool(name string) (*Tool, bool) { return nil, false }

// Call runs one call and returns what it came to; never nil. ctx cancels it.
func (p *Package) Call(ctx context.Context, r Request) *Result { return nil }

// Tool is one tool of a loaded package with what is enforced on it.
type Tool struct {
	Definition tool.Definition
	Effective  capabilities.Effective // the claim that is held against it
	Listed     capabilities.Effective // what clients are told: never safer than what is enforced
	Grant      capabilities.Grant
}
