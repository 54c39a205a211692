package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolSet is what is served. Changes are atomic for clients: a list is read, and
// a change announced, only between two of them.
type toolSet struct {
	replace sync.Mutex // one Replace at a time

	// mu is locked before the SDK's own lock, never under it.
	mu     sync.RWMutex
	byName map[string]*entry

	announcedMu sync.Mutex
	announced   map[mcp.Session]struct{} // were told of the last change
}

// Replace serves the tools of these packages, and of the host's own those that are
// named ([ToolPreview] and so on), from now on. On an error nothing
// has changed. Calls that run are answered. Clients are told once that the list
// changed, also where only a hint did; a tool whose listing stays the same is
// left as it is, and its further calls go to the package that brings it now.
func (s *Server) Replace(ps []Package, hostTools ...string) error {
	s.tools.replace.Lock()
	defer s.tools.replace.Unlock()
	es, err := entries(ps)
	if err != nil {
		return err
	}
	own, err := s.hostEntries(hostTools)
	if err != nil {
		return err
	}
	es = append(es, own...)
	byName := make(map[string]*entry, len(es))
	var changed []*entry
	for _, e := range es {
		if err := e.list(); err != nil {
			return fmt.Errorf("%s: %w", e.where(), err)
		}
		byName[e.name] = e
		if old := s.tools.byName[e.name]; old == nil || !bytes.Equal(old.wire, e.wire) {
			changed = append(changed, e)
		}
	}
	var gone []string
	for name := range s.tools.byName {
		if byName[name] == nil {
			gone = append(gone, name)
		}
	}

	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	s.tools.byName = byName
	s.tools.forget()
	for _, e := range changed {
		s.mcp.AddTool(e.listed, s.handler(e.name))
	}
	if len(gone) > 0 {
		s.mcp.RemoveTools(gone...)
	}
	return nil
}

// where names the tool in an error.
func (e *entry) where() string {
	if e.own != nil {
		return "tool " + e.name
	}
	return fmt.Sprintf("package %s: tool %s", e.pkg.Name(), e.tool.Definition.Name)
}

// Names returns the name that clients use, by package and the tool's name
// there.
func (s *Server) Names() map[string]map[string]string {
	s.tools.mu.RLock()
	defer s.tools.mu.RUnlock()
	out := map[string]map[string]string{}
	for name, e := range s.tools.byName {
		if e.own != nil {
			continue
		}
		p := e.pkg.Name()
		if out[p] == nil {
			out[p] = map[string]string{}
		}
		out[p][e.tool.Definition.Name] = name
	}
	return out
}

func (t *toolSet) get(name string) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// receiving keeps a list from being read while it changes.
func (t *toolSet) receiving(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			t.mu.RLock()
			defer t.mu.RUnlock()
		}
		return next(ctx, method, req)
	}
}

// sending announces a change once and when it is complete. The SDK announces
// what was added in the last 10 ms, which a busy machine does not add up to one.
func (t *toolSet) sending(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" && !t.announce(req.GetSession()) {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// announce waits for the end of a change, and reports whether the session is
// still to be told of the last one.
func (t *toolSet) announce(s mcp.Session) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.announcedMu.Lock()
	defer t.announcedMu.Unlock()
	_, told := t.announced[s]
	t.announced[s] = struct{}{}
	return !told
}

func (t *toolSet) forget() {
	t.announcedMu.Lock()
	defer t.announcedMu.Unlock()
	t.announced = map[mcp.Session]struct{}{}
}

// list fills in what clients see of the tool. The SDK panics on definitions that
// it cannot serve; they come from packages, so they are errors here.
func (e *entry) list() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if e.listed, err = e.listing(); err != nil {
		return err
	}
	if e.wire, err = json.Marshal(e.listed); err != nil {
		return err
	}
	trial := mcp.NewServer(&mcp.Implementation{Name: "trial", Version: "1"}, nil)
	trial.AddTool(e.listed, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("trial")
	})
	return nil
}
