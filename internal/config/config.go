// Package config reads the operator's configuration, sandboxd.yaml.
package config

import (
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Config is what sandboxd.yaml says, checked and with defaults filled in.
type Config struct {
	Packages   []Package
	Principals []Principal // none: everybody is the principal "local"
	Limits     Limits
	Listen     Listen
	Store      string // postgres://…; empty: SQLite in the state folder
	Keep       Keep
	HostTools  []string // tools of the host's own that are served: sandboxd_preview, sandboxd_undo, sandboxd_changes; default: none
	Audit      Audit
	Log        Log
	Traces     Traces
	Process    Process
	WasmOpt    string        // path of Binaryen's wasm-opt, or auto for the one on PATH; empty: it is not used
	Grace      time.Duration // how long calls may run on after a stop; default: 30s

	file   string
	places map[string]place
}

// Package is a package with what the operator gives it.
type Package struct {
	Source         string            // an absolute path
	As             string            // empty: its own name
	Mode           capabilities.Mode // default: Enforce
	Folders        map[string]string // absolute host folder by volume name
	Managed        map[string]string // name of a shared managed volume by volume name
	Env            map[string]string
	OptionalWrites []string
	Limits         PackageLimits // default: those of [Limits].Package

	Outbox        map[string]Sink   // where messages for a host go, by host; default: none may be handed over
	AppendOnly    []string          // patterns of guest paths; default: none
	VolatileFiles []string          // patterns of guest paths; default: none
	Relaxations   Relaxations       // default: those that were approved by `sandboxd approve`
	Recoverable   time.Duration     // a loss is accepted where its undo is guaranteed for so long; default: none is
	Replay        map[string]Replay // by tool, or "default"; default: always
	CommitOnError []string          // tools; default: none
}

// Sink is where messages of the outbox go.
type Sink struct {
	File string // absolute path of a file that gets a line of JSON a message
}

// Relaxations are the exceptions that a package requests and that the operator
// approves here.
type Relaxations struct {
	All   bool     // whatever the package requests
	Lines []string // or these, as `sandboxd inspect` shows them
}

// Replay says how often calls of an idempotent tool are run a second time:
// "always", "sample" or "off".
type Replay string

// Keep says for how long the host keeps what calls leave beside their effects.
type Keep struct {
	Undo            time.Duration // what undoing a call takes; default: 168h
	UndoSize        int64         // of it, of one principal's package, in bytes; default: 1 GiB
	IdempotencyKeys time.Duration // results under idempotency keys; default: 24h
}

// Principal is somebody who may call.
type Principal struct {
	Name  string
	Token [32]byte // the SHA-256 of the bearer token
}

// Limits bound what the daemon takes on at once.
type Limits struct {
	Requests int   // HTTP requests; default: 256
	Body     int64 // bytes of one request; default: 4 MiB
	Calls    int   // calls that run, of all packages; default: 64
	Waiting  int   // calls that wait for that; default: 256
	Memory   int64 // bytes that the running calls may take together: limits.memory and 16 times limits.output of each; default: 5 GiB
	Package  PackageLimits
}

// PackageLimits bound what one package's calls take at once.
type PackageLimits struct {
	Calls   int   // default: 16
	Waiting int   // default: 64
	Memory  int64 // bytes; default: 1280 MiB
}

// Listen says where the daemon listens. Addresses are host:port.
type Listen struct {
	HTTP    string // default: 127.0.0.1:8080
	Metrics string // default: on HTTP
	// WithoutAuthentication allows addresses that others reach where there are no
	// principals.
	WithoutAuthentication bool
}

// Audit bounds the audit log.
type Audit struct {
	MaxSize int64         // bytes; the oldest records go first; default: 512 MiB
	Keep    time.Duration // age of the oldest record; default: 0, no bound
}

// Log says how the daemon logs.
type Log struct {
	Level  string // debug, info, warn, error; default: info
	Format string // text or json; default: text
}

// Traces says where traces go.
type Traces struct {
	Endpoint string  // URL of an OTLP receiver over HTTP; empty: none
	Sample   float64 // share of the calls without a sampled parent; default: 1
}

// Process sets the garbage collector of the daemon. The zero value leaves it to
// the defaults that were measured.
type Process struct {
	GCPercent   int   // 0: the daemon's default
	MemoryLimit int64 // bytes; 0: that of [Limits].Memory
}
