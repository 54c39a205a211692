package host

import (
	"slices"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/trust"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// binding returns what a package is given: what the configuration says, and what
// of its requests was approved.
func binding(src *tool.Package, spec config.Package, granted trust.Grants) runtime.Binding {
	b := runtime.Binding{
		As: spec.As, Mode: spec.Mode, Folders: spec.Folders, Managed: spec.Managed,
		Env: spec.Env, OptionalWrites: spec.OptionalWrites,
		Limits:      runtime.CallLimits{Calls: spec.Limits.Calls, Waiting: spec.Limits.Waiting, Memory: spec.Limits.Memory},
		Relaxations: relaxations(src.Manifest.Relaxations, spec, granted),
		AppendOnly:  spec.AppendOnly, VolatileFiles: spec.VolatileFiles,
		CommitOnError: spec.CommitOnError, Replay: map[string]runtime.ReplayPolicy{},
	}
	for name, r := range spec.Replay {
		b.Replay[name] = policy(r)
	}
	for _, host := range src.Manifest.Requests.Outbox {
		if _, sink := spec.Outbox[host]; sink || slices.Contains(granted.Outbox, host) {
			b.Outbox = append(b.Outbox, host)
		}
	}
	return b
}

func policy(r config.Replay) runtime.ReplayPolicy {
	switch r {
	case "sample":
		return runtime.ReplaySample
	case "off":
		return runtime.ReplayOff
	}
	return runtime.ReplayAlways
}

// relaxations returns those of the requested relaxations that are approved, here
// or by `sandboxd approve`. That losses may be taken back is the operator's to
// allow without a request, too.
func relaxations(requested tool.Relaxations, spec config.Package, granted trust.Grants) tool.Relaxations {
	approved := granted.Relaxations.Lines()
	r := requested.Only(func(line string) bool {
		return spec.Relaxations.All || slices.Contains(spec.Relaxations.Lines, line) || slices.Contains(approved, line)
	})
	if r.Recoverable == 0 {
		r.Recoverable = spec.Recoverable
	}
	return r
}
