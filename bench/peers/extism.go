package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// plugin is an Extism plug-in in this process.
type plugin struct {
	compiled *extism.CompiledPlugin
	reused   bool
	mu       sync.Mutex
	byCaller map[int]*extism.Plugin
}

// pluginOptions of a plug-in.
type pluginOptions struct {
	wasm    string // file
	wasi    bool
	folder  string        // at /data; empty: none
	reused  bool          // one instance for each caller; otherwise one for each call
	timeout time.Duration // 0: none; with one, wazero checks at each loop whether it has passed
}

// openPlugin compiles a plug-in, which the lab closes.
func (l *lab) openPlugin(ctx context.Context, o pluginOptions) (*plugin, error) {
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmFile{Path: o.wasm}}, Timeout: uint64(o.timeout.Milliseconds())}
	if o.folder != "" {
		manifest.AllowedPaths = map[string]string{o.folder: "/data"}
	}
	engine, err := l.config()
	if err != nil {
		return nil, err
	}
	config := extism.PluginConfig{EnableWasi: o.wasi, RuntimeConfig: engine.WithCloseOnContextDone(o.timeout > 0)}
	compiled, err := extism.NewCompiledPlugin(ctx, manifest, config, nil)
	if err != nil {
		return nil, fmt.Errorf("plug-in: %w", err)
	}
	l.onClose(func() error { return compiled.Close(context.WithoutCancel(ctx)) })
	return &plugin{compiled: compiled, reused: o.reused, byCaller: map[int]*extism.Plugin{}}, nil
}

func (p *plugin) instance(ctx context.Context) (*extism.Plugin, error) {
	return p.compiled.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig().WithSysWalltime().WithSysNanotime()})
}

// of returns the caller's instance, or one for this call.
func (p *plugin) of(ctx context.Context, caller int) (i *extism.Plugin, done func() error, err error) {
	if !p.reused {
		i, err = p.instance(ctx)
		if err != nil {
			return nil, nil, err
		}
		return i, func() error { return i.Close(ctx) }, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i = p.byCaller[caller]; i == nil {
		if i, err = p.instance(ctx); err != nil {
			return nil, nil, err
		}
		p.byCaller[caller] = i
	}
	return i, func() error { return nil }, nil
}

// subject returns the subject of one tool.
func (p *plugin) subject(name string, w work) measure.Subject {
	request := w.request()
	return measure.Subject{Name: name, CPU: measure.Self, Call: func(ctx context.Context, caller, n int) error {
		i, done, err := p.of(ctx, caller)
		if err != nil {
			return err
		}
		status, answer, err := i.CallWithContext(ctx, "call", request)
		if err == nil && status != 0 {
			err = fmt.Errorf("status %d: %s", status, answer)
		}
		if err == nil {
			err = w.check(answer, n)
		}
		if end := done(); err == nil {
			err = end
		}
		return err
	}}
}
