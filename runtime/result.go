package runtime

import (
	"encoding/json"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/undo"
)

// Outcome is how a call ended. The values are the label values of the metric
// sandboxd_calls_total.
type Outcome string

// The outcomes of calls.
const (
	OK        Outcome = "ok"
	ToolError Outcome = "tool_error" // isError, an exit status other than 0, a trap
	Violation Outcome = "violation"
	Refused   Outcome = "refused" // the operator's policy, no such tool, arguments that do not fit, a client that lacks a capability, a host that closes
	Timeout   Outcome = "timeout" // or the caller went away
	Limit     Outcome = "limit"   // of the call, or of how many may run and wait
	Conflict  Outcome = "conflict"
	HostError Outcome = "host_error"
)

// Request is one call of a tool.
type Request struct {
	Tool      string
	Arguments json.RawMessage // a JSON object that fits the tool's inputSchema; empty: {}
	DryRun    bool            // judge and show, commit nothing
	Show      *undo.Show      // not nil: a dry run whose result shows this much of the differences, see [Result.Diff]
	Observe   bool            // look at what the call is, whatever its tool claims; see [Observed]
	// IdempotencyKey names the call among those of its principal and tool: one that was
	// committed under the key is not done again. Default: the argument that the tool
	// names for it, or none.
	IdempotencyKey string
	Principal      string       // whose call it is, a name as packages have; empty: "local"
	Trace          TraceContext // of the caller
	// ClientCapabilities are what the caller's client declares that it can do, names
	// of [tool.ClientCapabilities]. Default: nothing; a tool that requires more is
	// refused with a [*CapabilityError].
	ClientCapabilities []string
	Notify             Notify
}

// TraceContext is what a caller sent of its trace, as it was sent
// (W3C Trace Context, sections 3.2 and 3.3). The zero value is none.
type TraceContext struct{ Traceparent, Tracestate string }

// Notify receives what a guest says while its call runs. It is called from the
// goroutine of the call and must not block for long. Nil functions drop.
type Notify struct {
	Progress func(Progress)
	Log      func(LogMessage)
}

// Progress is how far a call is (schema.ts, ProgressNotificationParams).
type Progress struct {
	Progress float64 // increases
	Total    float64 // 0: not known
	Message  string  // valid UTF-8; may be empty
}

// LogMessage is a message for the client's log (schema.ts,
// LoggingMessageNotificationParams). Level is one of debug, info, notice,
// warning, error, critical, alert, emergency (RFC 5424, section 6.2.1).
type LogMessage struct{ Level, Text string }

// Result is what a call came to. Its JSON form is what `sandboxd call --json`
// prints.
type Result struct {
	CallID    string  `json:"callId"`
	Outcome   Outcome `json:"outcome"`
	Committed bool    `json:"committed"`
	// Partial is set when a fault of the host left a part of the call's changes,
	// or may have.
	Partial   bool                    `json:"partial,omitempty"`
	Effects   []capabilities.Effect   `json:"effects"`
	Violation *capabilities.Violation `json:"violation"` // the first one
	Denials   []capabilities.Denial   `json:"denials"`
	Output    Output                  `json:"result"`
	// Reported is set when the call broke its claim in report mode: it ran on, and
	// nothing that it did was kept.
	Reported bool                     `json:"-"`
	All      []capabilities.Violation `json:"-"` // every violation seen
	Stderr   []byte                   `json:"-"` // the guest's log, cut to the output limit
	Duration time.Duration            `json:"-"`
	Waited   time.Duration            `json:"-"` // to be admitted, a part of Duration
	Fuel     int64                    `json:"-"` // that the guest of the last run spent after its start-up code, in the units of limits.fuel
	// Replay is the verdict of running the call a second time.
	Replay Replay `json:"replay,omitempty"`
	// Diff is what the call would leave, where [Request.Show] asked for it and the
	// guest came to its end.
	Diff *undo.Diff `json:"diff,omitempty"`
	// Remembered is set where the result is that of the first call under the same
	// idempotency key, id and effects too, and nothing was done. An observer is told
	// of a call of its own, without effects.
	Remembered bool `json:"remembered,omitempty"`
	// Observed is what the call was seen to be, as far as it was looked at.
	Observed Observed `json:"-"`
	// Recorded is set where the call's own record was committed with it.
	Recorded bool `json:"-"`
	// DroppedMeta counts the guest's _meta keys that carried the project's
	// prefix and were dropped.
	DroppedMeta int `json:"-"`
	// DroppedNotes counts the guest's progress and log messages that were not
	// valid or too many.
	DroppedNotes int `json:"-"`
	// Err is what stopped the call, and what went wrong around it, for the host's
	// log. After OK it is nil, but for faults of the host that changed nothing
	// for the caller.
	Err error `json:"-"`
}

// Output is an MCP CallToolResult (schema.ts, CallToolResult) whose text is
// valid UTF-8 and whose _meta holds no key under the project's prefix.
type Output struct {
	Content           []json.RawMessage          `json:"content"`
	StructuredContent json.RawMessage            `json:"structuredContent,omitempty"`
	IsError           bool                       `json:"isError,omitempty"`
	Meta              map[string]json.RawMessage `json:"_meta,omitempty"`
}

// Observed is what a call was seen to be, apart from its effects.
type Observed struct {
	Lost    *additive.Loss       // the first thing that would be lost; nil: nothing, or nobody looked
	Further *capabilities.Effect // the first thing that a second run would do; nil likewise
}
