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

// newDelivery returns the JSON object that a guest receives for one call, of
// arguments in canonical form.
func newDelivery(toolName, callID string, arguments json.RawMessage) []byte {
	const parts = len(`{"tool":"","arguments":,"context":{"callId":""}}`)
	b := make([]byte, 0, parts+quotedSize([]byte(toolName))+len(arguments)+quotedSize([]byte(callID)))
	b = appendQuoted(append(b, `{"tool":"`...), []byte(toolName))
	b = append(append(b, `","arguments":`...), arguments...)
	b = appendQuoted(append(b, `,"context":{"callId":"`...), []byte(callID))
	return append(b, `"}}`...)
}

// invoke calls the guest once and returns its answer. A command reads the
// request from the standard input of its process; a reactor gets it in memory.
func (p *Package) invoke(ctx context.Context, i *Instance, request []byte, stdout *cappedWriter) ([]byte, error) {
	switch p.source.Manifest.ABI {
	case tool.Command:
		err := i.exports.start.CallWithStack(ctx, nil)
		return stdout.b, err
	case tool.Reactor:
		return i.callReactor(ctx, request, p.source.Manifest.Limits.Output)
	case tool.MCP, tool.Extism:
	}
	return nil, fmt.Errorf("abi %s: %w", p.source.Manifest.ABI, ErrNotSupported)
}

// callReactor puts the request into the guest's memory and takes the answer
// out of it.
func (i *Instance) callReactor(ctx context.Context, request []byte, limit int64) ([]byte, error) {
	stack := i.exports.stack[:]
	stack[0] = uint64(len(request))
	if err := i.exports.alloc.CallWithStack(ctx, stack); err != nil {
		return nil, err
	}
	ptr := api.DecodeU32(stack[0])
	if !i.module.Memory().Write(ptr, request) {
		return nil, fmt.Errorf("%w: sandboxd_alloc returned %d..+%d, outside of memory", errAnswer, ptr, len(request))
	}
	stack[0], stack[1] = uint64(ptr), uint64(len(request))
	if err := i.exports.call.CallWithStack(ctx, stack); err != nil {
		return nil, err
	}
	return readPacked(i.module, stack[0], limit)
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
