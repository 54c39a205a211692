package audit

import (
	"context"
	"log/slog"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// LogTo returns an observer that tells a host's log of what an operator should
// see and whoever answers the call does not tell: a broken claim and a fault of
// the host that the call outlived as warnings, and at level debug the end of
// what a guest wrote to its standard error. The text is as the guest wrote it:
// the logger's handler has to escape it.
func LogTo(logger *slog.Logger) runtime.Observer {
	return runtime.Observer{
		Violation: func(c runtime.CallInfo, v capabilities.Violation) {
			logger.Warn("tool broke a hint that it declares", call(c), "hint", v.Hint.String(),
				"operation", string(v.Operation), "object", v.Object, "phase", string(v.Phase))
		},
		CallEnd: func(c runtime.CallInfo, r *runtime.Result) {
			if r.Outcome == runtime.OK && r.Err != nil {
				logger.Warn("fault of the host around a call that ended well", call(c), "error", head(r.Err.Error()))
			}
			if len(r.Stderr) > 0 && logger.Enabled(context.Background(), slog.LevelDebug) {
				text, cut := tail(r.Stderr)
				logger.Debug("guest wrote to its standard error", call(c), "stderr", text, "cut", cut)
			}
		},
	}
}

// call returns the attributes that name a call, inline.
func call(c runtime.CallInfo) slog.Attr {
	return slog.GroupAttrs("", slog.String("call", c.ID), slog.String("principal", c.Principal),
		slog.String("package", c.Package), slog.String("tool", c.Tool))
}
