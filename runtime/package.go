package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/tool"
)

// Package is a loaded package, ready to be called. It is safe for concurrent
// use.
type Package struct {
	engine    *Engine
	source    *tool.Package
	name      string
	compiled  wazero.CompiledModule
	factory   *factory
	instances Instances
	kind      Kind
	why       Reason // it is no other kind
	atInput   bool   // calls begin at the first read of standard input
	because   error  // why they do not, or why a program is not left there; nil: they do, and it is
	volumes   *volumes
	files     volume.Base // of the package itself; nil: none
	turns     *turns
	args      []string // of the guest, the same for every call
	env       []string // the same
	tools     []*Tool
	rules     additive.Rules

	recoverable   time.Duration // a loss is accepted when its undo is guaranteed for so long; 0: none is
	commitOnError []string
	replay        map[string]ReplayPolicy
	looked        sync.Map // tools that were looked at 25 hours later

	log     []byte // what start-up code wrote to standard error
	later   *later // nil: it was loaded in full
	gate    *gate
	running *running
	close   sync.Once
	closed  error // what closing came to
}

// Tool is one tool of a loaded package with what is enforced on it.
type Tool struct {
	Definition tool.Definition
	Effective  capabilities.Effective // the claim that is held against it
	Listed     capabilities.Effective // what clients are told: never safer than what is enforced
	Grant      capabilities.Grant
	Schemas    *tool.Schemas // set on the tools of a loaded package
	Policy     Policy
}

// Judges returns which claims about a whole call this engine can enforce.
// Without a judge a claim is listed with its pessimistic value.
func Judges() capabilities.Judges { return capabilities.Judges{Additive: true, Replay: true} }

// Name returns the name that the operator gave the package, or its own.
func (p *Package) Name() string { return p.name }

// Kind returns what its instances are, and why no more than that; nothing as long
// as the package is not loaded.
func (p *Package) Kind() (Kind, Reason) {
	if !p.isLoaded() {
		return "", ""
	}
	return p.kind, p.why
}

// Because returns an [*InputError] with more on the [Reason], where the manifest says
// reseeds and the instances are not [KindStdin]; nil as long as the package is not
// loaded.
func (p *Package) Because() error {
	if !p.isLoaded() {
		return nil
	}
	return p.because
}

// Source returns the inert package.
func (p *Package) Source() *tool.Package { return p.source }

// Tools returns the tools in the order in which the package defines them.
func (p *Package) Tools() []*Tool { return slices.Clone(p.tools) }

// Tool returns the tool of that name.
func (p *Package) Tool(name string) (*Tool, bool) {
	i := slices.IndexFunc(p.tools, func(t *Tool) bool { return t.Definition.Name == name })
	if i < 0 {
		return nil, false
	}
	return p.tools[i], true
}

// Load compiles a package, learns its tools and returns it ready to be called.
// No tool is called, but the module's start function, its _initialize and its
// description run, with nothing granted: an attempt on a volume there, reads
// included, is an error that names operation and path. Errors are of type
// [*LoadError].
func (e *Engine) Load(ctx context.Context, src *tool.Package, b Binding) (*Package, error) {
	return e.load(ctx, src, b, nil)
}

// load is Load; with r set it leaves what takes time for later.
func (e *Engine) load(ctx context.Context, src *tool.Package, b Binding, r *Recorded) (p *Package, err error) {
	p = &Package{engine: e, source: src, name: src.Manifest.Name, turns: newTurns(), running: newRunning(errPackageClosed)}
	if src.Files != nil {
		p.files = volume.Fixed(src.Files)
	}
	if b.As != "" {
		p.name = b.As
	}
	phase := "manifest"
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close(context.WithoutCancel(ctx)))
			p = nil
		}
	}()
	defer p.loadFault(&phase, &err)
	ctx, done, err := e.running.begin(ctx)
	if err != nil {
		return p, err
	}
	defer done()
	if !tool.ValidPackageName(p.name) {
		return p, fmt.Errorf("name %q: want up to 64 lower-case letters, digits and hyphens", p.name)
	}
	if err := supported(src.Manifest); err != nil {
		return p, err
	}
	phase = "binding"
	if err := p.bind(b); err != nil {
		return p, err
	}
	phase = "volumes"
	if p.volumes, err = e.bind(p.name, src.Manifest.Requests.Volumes, b); err != nil {
		return p, err
	}
	definitions, err := p.complete(ctx, &phase, r)
	if err != nil {
		return p, err
	}
	phase = "schemas"
	if err := p.define(b, definitions); err != nil {
		return p, err
	}
	if p.later == nil {
		e.hasKind(p.name, p.kind, p.why)
	}
	return p, nil
}

// define takes the tools of the package.
func (p *Package) define(b Binding, definitions []tool.Definition) error {
	p.tools = toolsOf(b, p.source.Manifest.Requests, definitions)
	schemas, err := tool.NewSchemas(definitions)
	if err != nil {
		return err
	}
	for i, t := range p.tools {
		t.Schemas = schemas[i]
	}
	return nil
}

// bind takes what of the binding is not about volumes.
func (p *Package) bind(b Binding) (err error) {
	m := p.source.Manifest
	p.args = append([]string{p.name}, m.Args...)
	if p.env, err = environment(m.Requests.Env, b.Env); err != nil {
		return err
	}
	if err := checkPatterns(b.OptionalWrites); err != nil {
		return err
	}
	for _, list := range [][]string{b.AppendOnly, b.VolatileFiles} {
		if err := checkPatterns(list); err != nil {
			return err
		}
	}
	if p.rules, err = rulesOf(b, m.Relaxations); err != nil {
		return err
	}
	if p.engine.store == nil && (m.Requests.KV || slices.ContainsFunc(m.Requests.Outbox, func(host string) bool { return slices.Contains(b.Outbox, host) })) {
		return fmt.Errorf("keys or messages are granted: %w", ErrNoStore)
	}
	p.recoverable, p.commitOnError, p.replay = b.Relaxations.Recoverable, b.CommitOnError, b.Replay
	limits, err := b.Limits.or(packageLimits)
	if err != nil {
		return err
	}
	p.gate = &gate{scope: "package " + p.name, limits: limits}
	memory := footprint(m.Limits)
	return errors.Join(p.gate.check(memory), p.engine.gate.check(memory))
}

// prepare makes the module ready to be instantiated.
func (p *Package) prepare(ctx context.Context, phase *string) error {
	if p.source.Manifest.Reseeds && p.engine.strategy == StrategyImage {
		// What is wrong with a module is told of the module itself, below.
		if p.because = p.leaving(ctx); p.because == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return p.compile(ctx, p.source.Module, phase)
}

// leaving makes the module ready as one that can be left at its first read of
// standard input. It returns an [*InputError] where it cannot be made one.
func (p *Package) leaving(ctx context.Context) error {
	no := func(err error) error { return &InputError{ReasonTool, err} }
	if p.source.Manifest.Limits.Fuel > 0 {
		return &InputError{ReasonFuel, errFuel}
	}
	if p.engine.rewrite == nil {
		return no(asyncify.ErrOff)
	}
	if err := CheckLink(p.source.Module, p.source.Manifest.ABI); err != nil {
		return no(err)
	}
	done := p.engine.compiling(p.name, len(p.source.Module))
	module, err := p.engine.rewrite(ctx, p.source.Module)
	done()
	if err != nil {
		return no(err)
	}
	var phase string
	if err := p.compile(ctx, module, &phase); err != nil {
		return no(err)
	}
	if p.factory.shape.why != "" {
		err := p.compiled.Close(ctx)
		p.compiled = nil
		return errors.Join(&InputError{p.factory.shape.why, errState}, err)
	}
	p.factory.leaves = true
	return nil
}

// compile makes a module ready, the package's own or one that was made of it.
func (p *Package) compile(ctx context.Context, module []byte, phase *string) error {
	m := p.source.Manifest
	guarded, shape, err := guard(module, m.Limits)
	if err != nil {
		return err
	}
	*phase = "link"
	if err := CheckLink(module, m.ABI); err != nil {
		return err
	}
	*phase = "compile"
	if p.compiled, err = p.engine.compile(ctx, p.name, guarded); err != nil {
		return err
	}
	p.factory = &factory{
		engine: p.engine, pkg: p.name, module: p.compiled, shape: shape,
		limits: m.Limits, reactor: m.ABI == tool.Reactor, sealed: p.sealed,
	}
	return nil
}

// supported refuses what is not built yet and would change what is enforced.
func supported(m tool.Manifest) error {
	switch m.ABI {
	case tool.Command, tool.Reactor:
	case tool.MCP, tool.Extism:
		return fmt.Errorf("abi %s: %w", m.ABI, ErrNotSupported)
	default:
		return fmt.Errorf("abi %q: %w", m.ABI, ErrNotSupported)
	}
	switch {
	case m.Requests.Session:
		return fmt.Errorf("requests.session: %w", ErrNotSupported)
	case m.Requests.SessionScratch > 0:
		return fmt.Errorf("requests.sessionScratch: %w", ErrNotSupported)
	}
	return nil
}

// listed returns what clients are told: in report mode a call runs on past what
// its claim excludes, so no claim is one that they may build on. A claim that is
// held against some calls only is none either.
func listed(b Binding, name string, e capabilities.Effective) capabilities.Effective {
	if b.Mode != capabilities.Enforce {
		return capabilities.Claim{}.Effective()
	}
	judges := Judges()
	judges.Replay = judges.Replay && replayPolicy(b.Replay, name) == ReplayAlways
	return e.Listed(judges)
}

// Close lets no further call begin, waits for those that run until ctx ends,
// stops the ones that are left (one that is being committed is not cut off), and
// releases what the package holds. Later calls are refused. It returns a
// [*RunningError] where a stopped call has not ended after 10 s; it runs on, and
// what it needs is released when it ends.
func (p *Package) Close(ctx context.Context) error {
	if p.running.drain(ctx) == nil {
		p.free(ctx)
		return p.closed
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.engine.patience)
	defer cancel()
	if err := p.running.stop(patient); err != nil {
		go func() {
			<-p.running.drained
			p.free(ctx)
		}()
		return err
	}
	p.free(ctx)
	return p.closed
}

// free releases what the package holds.
func (p *Package) free(ctx context.Context) {
	// Once: a module that is compiled twice counts its users.
	p.close.Do(func() {
		if p.volumes != nil {
			p.closed = p.volumes.close()
		}
		if p.instances != nil {
			p.closed = errors.Join(p.closed, p.instances.Close(context.WithoutCancel(ctx)))
		}
		if p.compiled != nil {
			p.closed = errors.Join(p.closed, p.compiled.Close(context.WithoutCancel(ctx)))
		}
	})
}

// ToolsOf returns the tools with what is enforced on each: its own claim over
// what the package requests. A volume whose access is not stated is given as
// far as the tool's claim can use it.
func ToolsOf(r tool.Requests, definitions []tool.Definition) []*Tool {
	return toolsOf(Binding{}, r, definitions)
}

func toolsOf(b Binding, r tool.Requests, definitions []tool.Definition) []*Tool {
	policy := capabilities.Policy{Mode: b.Mode, OptionalWrites: b.OptionalWrites, KV: r.KV}
	for _, host := range r.Outbox {
		if slices.Contains(b.Outbox, host) {
			policy.Outbox = append(policy.Outbox, host)
		}
	}
	for _, v := range r.Volumes {
		access := v.Access
		if access == capabilities.NoAccess {
			access = capabilities.WriteAccess
		}
		policy.Volumes = append(policy.Volumes, capabilities.VolumeGrant{Name: v.Name, Path: v.Path, Access: access})
	}
	var tools []*Tool
	for _, d := range definitions {
		e := d.Claim.Effective()
		tools = append(tools, &Tool{
			Definition: d,
			Effective:  e,
			Listed:     listed(b, d.Name, e),
			Grant:      capabilities.Derive(e, policy),
			Policy:     policyOf(b, d.Name, e),
		})
	}
	return tools
}
