package capabilities

import "fmt"

// Verb says what an effect does to the environment.
type Verb uint8

// The verbs of effects.
const (
	Read Verb = iota
	Create
	Append
	Insert
	Overwrite
	Delete
	Send
)

// String returns the verb in lower case, as logs and results carry it.
func (v Verb) String() string {
	switch v {
	case Read:
		return "read"
	case Create:
		return "create"
	case Append:
		return "append"
	case Insert:
		return "insert"
	case Overwrite:
		return "overwrite"
	case Delete:
		return "delete"
	case Send:
		return "send"
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// MarshalText writes the verb in lower case.
func (v Verb) MarshalText() ([]byte, error) {
	if v > Send {
		return nil, fmt.Errorf("verb %d: out of range", uint8(v))
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads a verb in lower case.
func (v *Verb) UnmarshalText(b []byte) error {
	for k := Read; k <= Send; k++ {
		if k.String() == string(b) {
			*v = k
			return nil
		}
	}
	return fmt.Errorf("verb %q: unknown", b)
}

// Kind says what sort of thing an effect acts on.
type Kind string

// The kinds of objects.
const (
	KindFile   Kind = "file"
	KindKey    Kind = "key"
	KindRow    Kind = "row"
	KindHTTP   Kind = "http"
	KindOutbox Kind = "outbox"
)

// Effect is one act on the environment: attempted, or left by a call.
type Effect struct {
	Verb   Verb   `json:"verb"`
	Kind   Kind   `json:"kind"`
	Object string `json:"object"` // guest path, key or URL; never a host path
	Bytes  int64  `json:"bytes"`
	Detail string `json:"detail,omitempty"`
}

// Operation names what a guest asked for, as violations and denials report it.
type Operation string

// The operations. OpRead appears in denials only.
const (
	OpRead      Operation = "read"
	OpWrite     Operation = "write"
	OpTruncate  Operation = "truncate"
	OpCreate    Operation = "create"
	OpMkdir     Operation = "mkdir"
	OpRmdir     Operation = "rmdir"
	OpUnlink    Operation = "unlink"
	OpRename    Operation = "rename"
	OpSetSize   Operation = "set_size"
	OpSetTimes  Operation = "set_times"
	OpPut       Operation = "put"
	OpDelete    Operation = "delete"
	OpAppend    Operation = "append"
	OpIncrement Operation = "increment"
	OpSend      Operation = "send"
	OpHTTP      Operation = "http"
	OpSQL       Operation = "sql"
	OpSocket    Operation = "socket"
	OpCommit    Operation = "commit"
	OpReplay    Operation = "replay"
)

// Capability names what a denied operation would have needed.
type Capability string

// The capabilities of the metrics and of denials.
const (
	CapVolume      Capability = "volume"
	CapVolumeWrite Capability = "volume-write"
	CapLink        Capability = "link"
	CapHTTP        Capability = "http"
	CapKV          Capability = "kv"
	CapSQL         Capability = "sql"
	CapOutbox      Capability = "outbox"
	CapService     Capability = "service"
	CapSecret      Capability = "secret"
	CapEnv         Capability = "env"
	CapSocket      Capability = "socket"
	CapScratch     Capability = "scratch"
)
