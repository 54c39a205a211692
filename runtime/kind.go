package runtime

import (
	"slices"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime/image"
)

// Kind says what the instances of a package's module are when a call gets them, as
// a label of metrics.
type Kind string

// The kinds of instances.
const (
	// KindInitialized are put back to how the module was after _initialize, and the
	// warm-up where the manifest has one: reactors.
	KindInitialized Kind = "initialized"
	// KindInstantiated are put back to how the module was before _start: commands.
	KindInstantiated Kind = "instantiated"
	// KindStdin are put back to where the program first reads standard input: commands
	// whose manifest says reseeds.
	KindStdin Kind = "stdin"
	// KindNew are made for one call each: what cannot be put back. The [Reason] says why.
	KindNew Kind = "new"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindInitialized, KindInstantiated, KindStdin, KindNew} }

// Methods by which an instance that no image puts back comes to be ready, as labels
// of metrics beside those of [image.Method].
const (
	methodNew        = "new"        // made when a call needed it
	methodPrestarted = "prestarted" // made ahead; the time is that of taking it
)

// Methods returns all methods by which instances come to be ready for a call.
func Methods() []string {
	return []string{
		string(image.MethodScan), string(image.MethodPagemap), string(image.MethodCompare), string(image.MethodCopy),
		methodNew, methodPrestarted,
	}
}

// Reason says why the instances of a module are of no better kind, as a label of
// metrics. It is empty for [KindInitialized] and [KindStdin], and for [KindInstantiated]
// where the manifest does not say reseeds.
type Reason string

// The reasons besides those of [wasmbin.Unimageable], which are known without running
// the module.
const (
	ReasonRandom   Reason = "random"   // its start-up code draws random numbers, which all calls would share, and it exports no sandboxd_reseed that works
	ReasonStrategy Reason = "strategy" // the engine was told to make new ones

	// Why a program that reseeds is KindInstantiated.
	ReasonTool        Reason = "no wasm-opt"  // or the one that is there did not make a module of it that can be left
	ReasonBeforeInput Reason = "before input" // it does something before it reads standard input that an image does not hold
	ReasonNoInput     Reason = "no input"     // it does not read standard input
	ReasonStack       Reason = "stack"        // it is in the midst of more than an image has room for
	ReasonFuel        Reason = "fuel"         // its fuel is limited, of which a module that can be left needs more
)

// Reasons returns all reasons.
func Reasons() []Reason {
	rs := []Reason{ReasonRandom, ReasonStrategy, ReasonTool, ReasonBeforeInput, ReasonNoInput, ReasonStack, ReasonFuel}
	for _, u := range []wasmbin.Unimageable{
		wasmbin.NoMemory, wasmbin.ManyMemories, wasmbin.ImportedState, wasmbin.TableChanged,
		wasmbin.SegmentDropped, wasmbin.GlobalType, wasmbin.ManyGlobals,
	} {
		rs = append(rs, Reason(u))
	}
	return rs
}

// Strategy says how an engine makes instances. What calls come to does not depend on it.
type Strategy string

// The strategies.
const (
	StrategyImage      Strategy = "image"      // put back after each call, where a module allows it
	StrategyNew        Strategy = "new"        // made when a call needs one
	StrategyPrestarted Strategy = "prestarted" // made ahead
)

var strategies = []Strategy{StrategyImage, StrategyNew, StrategyPrestarted}

// Strategies returns all strategies.
func Strategies() []Strategy { return slices.Clone(strategies) }

func (s Strategy) valid() bool { return slices.Contains(strategies, s) }
