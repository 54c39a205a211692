package runtime

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// Binding is what the operator gives a package. Its managed volumes are kept
// under its name, so whoever loads packages decides whose a name is.
type Binding struct {
	As      string            // the package's name here; empty: its own
	Folders map[string]string // host folder by volume name; a volume that is not listed is managed
	Managed map[string]string // name of a managed volume that packages share, by volume name; default: the package's own
	Env     map[string]string // values of the environment variables that the package requests; default: none
	// OptionalWrites are patterns of guest paths; writing them by a read-only tool
	// is refused without stopping it. Default: none.
	OptionalWrites []string
	Limits         CallLimits
	Mode           capabilities.Mode // default: Enforce
	// Relaxations are those that are approved. What the package requests and is not
	// among them does not apply. Default: none.
	Relaxations   tool.Relaxations
	AppendOnly    []string                // patterns of guest paths: files in unknown formats that may grow; default: none
	VolatileFiles []string                // patterns of guest paths: files that may change at will; default: none
	CommitOnError []string                // tools whose effects are saved although their result says isError; default: none
	Replay        map[string]ReplayPolicy // by tool, or "default"; default: always
	Outbox        []string                // hosts that messages may be handed over for, of those that the package requests; default: none
}

// CallLimits bound what the calls of one package, or of all packages of an
// engine, take together. The zero value of a field is its default, which is
// the first one for a package and the second one for an engine. A package that
// may run as much as its engine can keep all others waiting.
type CallLimits struct {
	Calls   int           // calls that run at once; default: 16, 64
	Waiting int           // calls that wait for that; default: 64, 256
	Memory  int64         // bytes that the running calls may take: limits.memory and 16 times limits.output of each; default: 1280 MiB, 5 GiB, as so many calls of default limits take
	Wait    time.Duration // how long a call waits at most; default: 10 s
}

var (
	packageLimits = CallLimits{Calls: 16, Waiting: 64, Memory: 1280 << 20, Wait: 10 * time.Second}
	engineLimits  = CallLimits{Calls: 64, Waiting: 256, Memory: 5 << 30, Wait: 10 * time.Second}
)

// or returns the limits with those of d where nothing is said.
func (l CallLimits) or(d CallLimits) (CallLimits, error) {
	if l.Calls < 0 || l.Waiting < 0 || l.Memory < 0 || l.Wait < 0 {
		return l, errors.New("limits of calls: negative; want 0 for the default, or more")
	}
	if l.Calls == 0 {
		l.Calls = d.Calls
	}
	if l.Waiting == 0 {
		l.Waiting = d.Waiting
	}
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	if l.Wait == 0 {
		l.Wait = d.Wait
	}
	return l, nil
}

// environment returns the variables that are requested and given, "KEY=value",
// sorted: the same for every tool and every caller.
func environment(requested []string, given map[string]string) ([]string, error) {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !slices.Contains(requested, name):
			return nil, fmt.Errorf("env %s: the package does not request it", name)
		case strings.ContainsRune(given[name], 0):
			return nil, fmt.Errorf("env %s: its value holds a NUL byte", name)
		}
		env = append(env, name+"="+given[name])
	}
	return env, nil
}

// checkPatterns refuses a pattern that could match nothing.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}
