package metrics

import (
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// Values of the label result.
const (
	resultOK    = "ok"
	resultError = "error"
)

func result(ok bool) string {
	if ok {
		return resultOK
	}
	return resultError
}

func outcomeLabel(o runtime.Outcome) string {
	switch o {
	case runtime.OK, runtime.ToolError, runtime.Violation, runtime.Refused, runtime.Timeout, runtime.Limit, runtime.Conflict,
		runtime.HostError:
		return string(o)
	}
	return other
}

func hintLabel(h capabilities.Hint) string {
	switch h {
	case capabilities.ReadOnlyHint, capabilities.DestructiveHint, capabilities.IdempotentHint, capabilities.OpenWorldHint:
		return h.String()
	}
	return other
}

func operationLabel(o capabilities.Operation) string {
	switch o {
	case capabilities.OpRead, capabilities.OpWrite, capabilities.OpTruncate, capabilities.OpCreate, capabilities.OpMkdir,
		capabilities.OpRmdir, capabilities.OpUnlink, capabilities.OpRename, capabilities.OpSetSize, capabilities.OpSetTimes,
		capabilities.OpPut, capabilities.OpDelete, capabilities.OpAppend, capabilities.OpIncrement, capabilities.OpSend,
		capabilities.OpHTTP, capabilities.OpSQL, capabilities.OpSocket, capabilities.OpCommit, capabilities.OpReplay:
		return string(o)
	}
	return other
}

func capabilityLabel(c capabilities.Capability) string {
	switch c {
	case capabilities.CapVolume, capabilities.CapVolumeWrite, capabilities.CapLink, capabilities.CapHTTP, capabilities.CapKV,
		capabilities.CapSQL, capabilities.CapOutbox, capabilities.CapService, capabilities.CapSecret, capabilities.CapEnv,
		capabilities.CapSocket, capabilities.CapScratch:
		return string(c)
	}
	return other
}

func replayLabel(v runtime.Replay) string {
	switch v {
	case runtime.Idempotent, runtime.Further, runtime.TimeDependent, runtime.Inconclusive:
		return string(v)
	case runtime.NotReplayed:
	}
	return other
}

func sendLabel(k runtime.SendKind) string {
	switch k {
	case runtime.SentOutbox:
		return string(k)
	}
	return other
}

// deliveryResults are the values of the label result of deliveries.
var deliveryResults = []string{"delivered", "failed", "given-up"}

func deliveryLabel(result string) string {
	if slices.Contains(deliveryResults, result) {
		return result
	}
	return other
}

// methodLabel names how an instance came to be ready for a call.
func methodLabel(method string) string {
	if slices.Contains(runtime.Methods(), method) {
		return method
	}
	return other
}

func kindLabel(k runtime.Kind) string {
	if slices.Contains(runtime.Kinds(), k) {
		return string(k)
	}
	return other
}

// reasonLabel is empty where there is none.
func reasonLabel(why runtime.Reason) string {
	if why == "" || slices.Contains(runtime.Reasons(), why) {
		return string(why)
	}
	return other
}
