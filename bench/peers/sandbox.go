package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/internal/asyncify"
	"github.com/sandboxd/sandboxd/internal/memstore"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// strategyName is a strategy of the engine with what the names of its rows end in.
type strategyName struct {
	strategy runtime.Strategy
	suffix   string
}

var strategies = []strategyName{
	{runtime.StrategyImage, ", image"}, {runtime.StrategyNew, ", new instance"}, {runtime.StrategyPrestarted, ", prestarted"},
}

// sandbox is one engine with the packages that were loaded into it.
type sandbox struct {
	engine   *runtime.Engine
	strategy runtime.Strategy
	packages map[string]*runtime.Package
}

// openSandbox returns an engine, which the lab closes.
func (l *lab) openSandbox(ctx context.Context, s runtime.Strategy) (*sandbox, error) {
	e, err := runtime.New(ctx, runtime.Options{
		Cache: l.path("cache"), Strategy: s, Store: memstore.New(), Rewrite: l.rewriting(),
		Limits: runtime.CallLimits{Calls: 64, Waiting: 256, Memory: 16 << 30},
	})
	if err != nil {
		return nil, err
	}
	l.onClose(func() error { return e.Close(context.WithoutCancel(ctx)) })
	return &sandbox{e, s, map[string]*runtime.Package{}}, nil
}

// rewriting returns what makes programs that can be left at their first read of
// standard input. Where wasm-opt is not here, the package says so of its kind.
func (l *lab) rewriting() func(context.Context, []byte) ([]byte, error) {
	t, err := asyncify.New(asyncify.Options{Program: asyncify.Auto, Cache: l.path("cache", "asyncify")})
	if err != nil {
		return func(context.Context, []byte) ([]byte, error) { return nil, err }
	}
	return t.Rewrite
}

// load loads a package as it was shipped, once, with one folder for all its
// volumes.
func (s *sandbox) load(ctx context.Context, dir, folder string) (*runtime.Package, error) {
	if p := s.packages[dir]; p != nil {
		return p, nil
	}
	p, err := tool.Load(dir, nil)
	if err != nil {
		return nil, err
	}
	// As much as there may be: how the cost grows is measured up to 10 MB.
	p.Manifest.Limits.Memory, p.Manifest.Limits.Output, p.Manifest.Limits.Timeout = 1<<30, 16<<20, time.Minute
	loaded, err := s.add(ctx, p, folder)
	if err == nil {
		s.packages[dir] = loaded
	}
	return loaded, err
}

// add loads a package that may take as much at once as the engine.
func (s *sandbox) add(ctx context.Context, p *tool.Package, folder string) (*runtime.Package, error) {
	folders := map[string]string{}
	for _, v := range p.Manifest.Requests.Volumes {
		folders[v.Name] = folder
	}
	return s.engine.Load(ctx, p, runtime.Binding{
		Folders: folders, Limits: runtime.CallLimits{Calls: 64, Waiting: 256, Memory: 16 << 30},
	})
}

// textOf returns the text of the one content of an answer.
func textOf(content []json.RawMessage) (string, error) {
	if len(content) != 1 {
		return "", fmt.Errorf("%d contents", len(content))
	}
	var c struct{ Text string }
	err := json.Unmarshal(content[0], &c)
	return c.Text, err
}

// holds returns an error where a package is not run by the engine's strategy.
func (s *sandbox) holds(p *runtime.Package) error {
	kind, why := p.Kind()
	switch {
	case s.strategy != runtime.StrategyImage:
	case kind == runtime.KindNew:
		return &missingError{"an image of " + p.Name(), "it gets new instances: " + string(why)}
	case kind == runtime.KindInstantiated && p.Source().Manifest.Reseeds:
		return &missingError{"an image of " + p.Name() + " at its first read", "its calls begin before its start-up: " + string(why)}
	}
	return nil
}

// sandboxed returns the subject of one tool in the sandbox.
func sandboxed(name string, p *runtime.Package, w work) measure.Subject {
	return measure.Subject{Name: name, CPU: measure.Self, Call: func(ctx context.Context, _, n int) error {
		r := p.Call(ctx, runtime.Request{Tool: w.tool, Arguments: w.arguments})
		if r.Outcome != runtime.OK {
			return fmt.Errorf("outcome %s: %w", r.Outcome, r.Err)
		}
		return w.checkContent(r.Output.Content, n)
	}}
}

// work is what all subjects of a table do.
type work struct {
	tool      string
	arguments json.RawMessage
	answer    string // the text that is to be answered
}

// request returns what a guest is handed, as the engine does it.
func (w work) request() []byte {
	b, err := json.Marshal(struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Context   struct {
			CallID string `json:"callId"`
		} `json:"context"`
	}{Tool: w.tool, Arguments: w.arguments})
	if err != nil {
		panic(err) // it is made of JSON
	}
	return b
}

// check looks at an answer of the ABI: as text, or as a result of MCP. The first
// answer of a caller is read, of later ones only the length, so that checking is
// not what is measured.
func (w work) check(answer []byte, n int) error {
	if n > 0 && len(answer) >= len(w.answer) || string(answer) == w.answer {
		return nil
	}
	var r struct{ Content []json.RawMessage }
	if err := json.Unmarshal(bytes.TrimSpace(answer), &r); err != nil {
		return fmt.Errorf("answer %.100q: %w", answer, err)
	}
	return w.checkContent(r.Content, 0)
}

// checkContent looks at an answer whose content was taken apart.
func (w work) checkContent(content []json.RawMessage, n int) error {
	if n > 0 && len(content) == 1 && len(content[0]) >= len(w.answer) {
		return nil
	}
	text, err := textOf(content)
	if err == nil && text != w.answer {
		err = fmt.Errorf("answer %.100q", text)
	}
	return err
}
