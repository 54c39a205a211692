package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sandboxd/sandboxd/tool"
)

// messages are the JSON-RPC messages of one HTTP request.
type messages struct {
	list  []jsonrpc.Message
	batch bool
}

// parseMessages reads a body as the SDK's own reader of messages does, so that both
// read the same. It refuses an empty batch. Params may be part of the body.
func parseMessages(body []byte) (*messages, error) {
	ms := &messages{batch: bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))}
	var raw []json.RawMessage // none of it in body, which json.Unmarshal would write to
	if ms.batch {
		if err := json.Unmarshal(body, &raw); err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		if len(raw) == 0 {
			return nil, errors.New("body: empty batch")
		}
	} else {
		raw = append(raw, body)
	}
	for _, b := range raw {
		if !json.Valid(b) {
			return nil, errors.New("body: not JSON")
		}
		if r := plainRequest(b); r != nil {
			ms.list = append(ms.list, r)
			continue
		}
		m, err := jsonrpc.DecodeMessage(b)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		ms.list = append(ms.list, m)
	}
	return ms, nil
}

// single returns the request of a body that is one, else nil.
func (ms *messages) single() *jsonrpc.Request {
	if ms.batch {
		return nil
	}
	r, _ := ms.list[0].(*jsonrpc.Request)
	return r
}

func (ms *messages) method(name string) bool {
	r := ms.single()
	return r != nil && r.IsCall() && r.Method == name
}

func (ms *messages) calls() bool       { return ms.method("tools/call") }
func (ms *messages) listens() bool     { return ms.method("subscriptions/listen") }
func (ms *messages) initializes() bool { return ms.method("initialize") }

// declared returns the capabilities that the client declares in its initialize
// request.
func (ms *messages) declared() []string {
	r := ms.single()
	if r == nil {
		return nil
	}
	var p struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	if json.Unmarshal(r.Params, &p) != nil {
		return nil
	}
	var names []string
	for _, name := range tool.ClientCapabilities() {
		if bytes.HasPrefix(p.Capabilities[name], []byte("{")) {
			names = append(names, name)
		}
	}
	return names
}

// id returns the id of a single request, else the zero id.
func (ms *messages) id() jsonrpc.ID {
	if r := ms.single(); r != nil {
		return r.ID
	}
	return jsonrpc.ID{}
}

// cancelled returns the ids that notifications/cancelled name.
func (ms *messages) cancelled() []jsonrpc.ID {
	var ids []jsonrpc.ID
	for _, m := range ms.list {
		r, ok := m.(*jsonrpc.Request)
		if !ok || r.IsCall() || r.Method != "notifications/cancelled" {
			continue
		}
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &p) != nil {
			continue
		}
		if id, err := jsonrpc.MakeID(p.RequestID); err == nil && id.IsValid() {
			ids = append(ids, id)
		}
	}
	return ids
}
