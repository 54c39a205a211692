package mcpserver

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/runtime"
)

// maxNotes bounds what waits for a client that reads slower than a guest
// writes; what comes beyond is dropped.
const maxNotes = 64

// notes sends to the client what a guest says while its call runs. A goroutine
// of its own writes, so that a client that does not read holds up the answer to
// its own call, never the guest.
type notes struct {
	ctx  context.Context // of the request: the SDK finds the stream by it
	req  *mcp.CallToolRequest
	tool string
	log  *slog.Logger

	mu      sync.Mutex
	queue   chan func(context.Context) error // nil: nothing was said yet
	done    chan struct{}
	closed  bool
	dropped int
}

func newNotes(ctx context.Context, req *mcp.CallToolRequest, tool string, log *slog.Logger) *notes {
	return &notes{ctx: ctx, req: req, tool: tool, log: log}
}

// notify returns what the engine calls. Progress goes to clients that sent a
// token for it. The SDK drops log messages that the client did not ask for.
func (n *notes) notify() runtime.Notify {
	if n.req.Session == nil {
		return runtime.Notify{}
	}
	out := runtime.Notify{Log: n.logMessage}
	if n.req.Params != nil && n.req.Params.GetProgressToken() != nil {
		out.Progress = n.progress
	}
	return out
}

func (n *notes) progress(p runtime.Progress) {
	token := n.req.Params.GetProgressToken()
	n.send(func(ctx context.Context) error {
		return n.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message,
		})
	})
}

func (n *notes) logMessage(m runtime.LogMessage) {
	n.send(func(ctx context.Context) error {
		//lint:ignore SA1019 deprecated by 2026-07-28, and taken by clients of both eras
		return n.req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(m.Level), Logger: n.tool, Data: m.Text})
	})
}

// send queues one note, or drops it. It does not block.
func (n *notes) send(note func(context.Context) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if n.queue == nil {
		n.queue, n.done = make(chan func(context.Context) error, maxNotes), make(chan struct{})
		go n.run(n.queue, n.done)
	}
	select {
	case n.queue <- note:
	default:
		n.dropped++
	}
}

// run sends what is queued until the queue is closed. After a fault, or once the
// client has gone, it sends nothing more.
func (n *notes) run(queue <-chan func(context.Context) error, done chan<- struct{}) {
	defer close(done)
	broken := false
	for note := range queue {
		if broken || n.ctx.Err() != nil {
			continue
		}
		if err := n.guarded(note); err != nil {
			broken = true
			n.log.Debug("note not sent", "tool", n.tool, "error", err)
		}
	}
}

func (n *notes) guarded(note func(context.Context) error) error {
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("note panicked", "tool", n.tool, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return note(n.ctx)
}

// close waits until what is queued is sent: nothing follows the result.
func (n *notes) close() {
	n.mu.Lock()
	n.closed = true
	queue, done, dropped := n.queue, n.done, n.dropped
	n.mu.Unlock()
	if queue == nil {
		return
	}
	close(queue)
	<-done
	if dropped > 0 {
		n.log.Debug("notes dropped: client reads too slowly", "tool", n.tool, "count", dropped)
	}
}
