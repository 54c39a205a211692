package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/tool"
)

// errAnswer: a guest's answer cannot be read.
var errAnswer = errors.New("answer")

// delivery is the JSON object that a guest receives for one call.
type delivery struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Context   deliveryContext `json:"context"`
}

type deliveryContext struct {
	CallID string `json:"callId"`
}

func newDelivery(toolName, callID string, arguments json.RawMessage) ([]byte, error) {
	return json.Marshal(delivery{toolName, arguments, deliveryContext{callID}})
}

// invoke calls the guest once and returns its answer. A command reads the
// request from the standard input of its process; a reactor gets it in memory.
func (p *Package) invoke(ctx context.Context, i *Instance, request []byte, stdout *cappedWriter) ([]byte, error) {
	switch p.source.Manifest.ABI {
	case tool.Command:
		_, err := i.module.ExportedFunction("_start").Call(ctx)
		return stdout.b, err
	case tool.Reactor:
		return callReactor(ctx, i.module, request, p.source.Manifest.Limits.Output)
	case tool.MCP, tool.Extism:
	}
	return nil, fmt.Errorf("abi %s: %w", p.source.Manifest.ABI, ErrNotSupported)
}

// callReactor puts the request into the guest's memory and takes the answer
// out of it.
func callReactor(ctx context.Context, m api.Module, request []byte, limit int64) ([]byte, error) {
	at, err := m.ExportedFunction("sandboxd_alloc").Call(ctx, uint64(len(request)))
	if err != nil {
		return nil, err
	}
	ptr := api.DecodeU32(at[0])
	if !m.Memory().Write(ptr, request) {
		return nil, fmt.Errorf("%w: sandboxd_alloc returned %d..+%d, outside of memory", errAnswer, ptr, len(request))
	}
	packed, err := m.ExportedFunction("sandboxd_call").Call(ctx, uint64(ptr), uint64(len(request)))
	if err != nil {
		return nil, err
	}
	return readPacked(m, packed[0], limit)
}

// readPacked copies the bytes at (pointer << 32 | length) out of the memory.
func readPacked(m api.Module, packed uint64, limit int64) ([]byte, error) {
	ptr, n := uint32(packed>>32), uint32(packed)
	if int64(n) > limit {
		return nil, &LimitError{Limit: "output"}
	}
	view, ok := m.Memory().Read(ptr, n)
	if !ok {
		return nil, fmt.Errorf("%w: %d..+%d is outside of memory", errAnswer, ptr, n)
	}
	return bytes.Clone(view), nil
}
