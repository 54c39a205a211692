package capabilities

import (
	"fmt"
	"slices"
)

// Decision is the answer to an attempt. The zero value denies.
type Decision uint8

// The decisions.
const (
	Deny    Decision = iota // an ordinary error for the guest, recorded
	Violate                 // the claim excludes it: stop the guest, roll back
	Allow
)

// String returns "deny", "violate" or "allow".
func (d Decision) String() string {
	switch d {
	case Deny:
		return "deny"
	case Violate:
		return "violate"
	case Allow:
		return "allow"
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}

// Attempt is one thing a guest asks for, before it happens.
type Attempt struct {
	Operation Operation
	Object    string // guest path, or what names the object otherwise
	Volume    string // the volume's name for operations on files, else empty
	Keys      bool   // an operation on the package's keys
	// Tentative marks an open for reading and writing of a file that exists:
	// the guest may never write, so a read-only tool gets EROFS, not a stop.
	Tentative bool
	// Escape marks a path or link that leaves its volume.
	Escape bool
	// Link marks the making of a hard or symbolic link.
	Link bool
}

// Verdict is a decision with what the record and the guest are told: for
// [Violate] the hint, for [Deny] the capability and the errno.
type Verdict struct {
	Decision   Decision
	Hint       Hint
	Capability Capability
	Errno      Errno
}

// Decide returns what happens to an attempt under the grant. Operations that
// it does not know are denied.
func (g Grant) Decide(a Attempt) Verdict {
	switch {
	case a.Link:
		return denied(CapLink, EPERM)
	case a.Escape:
		return denied(CapVolume, EACCES)
	}
	switch a.Operation {
	case OpRead:
		if a.Keys {
			return g.decideKeys(ReadAccess)
		}
		return g.decideRead(a)
	case OpWrite, OpTruncate, OpCreate, OpMkdir, OpRmdir, OpUnlink, OpRename, OpSetSize, OpSetTimes:
		return g.decideWrite(a)
	case OpPut, OpDelete, OpAppend, OpIncrement:
		return g.decideKeys(WriteAccess)
	case OpSend:
		return g.decideSend(a.Object)
	case OpSocket:
		return g.decideSocket()
	case OpHTTP:
		return g.decideHTTP()
	case OpSQL:
		return denied(CapSQL, EACCES)
	case OpCommit, OpReplay:
		return denied(CapVolume, EACCES)
	}
	return denied(CapVolume, EACCES)
}

func denied(c Capability, e Errno) Verdict {
	return Verdict{Decision: Deny, Capability: c, Errno: e}
}

func (g Grant) decideRead(a Attempt) Verdict {
	if g.Volume(a.Volume) < ReadAccess {
		return denied(CapVolume, EACCES)
	}
	return Verdict{Decision: Allow}
}

// decideWrite judges changes of files. On a volume that was not granted, whose
// names cannot even be seen, trying breaks no claim: nothing could come of it.
func (g Grant) decideWrite(a Attempt) Verdict {
	access := g.Volume(a.Volume)
	if access == NoAccess {
		return denied(CapVolume, EACCES)
	}
	if g.Claim.ReadOnly {
		if a.Tentative && a.Operation == OpWrite || g.optional(a.Volume, a.Object) {
			return denied(CapVolumeWrite, EROFS)
		}
		return Verdict{Decision: Violate, Hint: ReadOnlyHint}
	}
	switch access {
	case WriteAccess:
		return Verdict{Decision: Allow}
	case ReadAccess:
		return denied(CapVolumeWrite, EROFS)
	case NoAccess:
		return denied(CapVolume, EACCES)
	}
	return denied(CapVolume, EACCES)
}

// decideKeys judges keys. A read-only tool breaks its claim by trying to change
// one, granted or not.
func (g Grant) decideKeys(need Access) Verdict {
	switch {
	case need == WriteAccess && g.Claim.ReadOnly:
		return Verdict{Decision: Violate, Hint: ReadOnlyHint}
	case g.KV == NoAccess:
		return denied(CapKV, EACCES)
	case g.KV < need:
		return denied(CapKV, EROFS)
	}
	return Verdict{Decision: Allow}
}

// decideSend judges the handing over of a message for a host. A closed tool
// reaches nobody, whatever its package requests.
func (g Grant) decideSend(host string) Verdict {
	switch {
	case g.Claim.ReadOnly:
		return Verdict{Decision: Violate, Hint: ReadOnlyHint}
	case !g.Claim.OpenWorld:
		return Verdict{Decision: Violate, Hint: OpenWorldHint}
	case slices.Contains(g.Outbox, host):
		return Verdict{Decision: Allow}
	}
	return denied(CapOutbox, EACCES)
}

func (g Grant) decideSocket() Verdict {
	if !g.Claim.OpenWorld {
		return Verdict{Decision: Violate, Hint: OpenWorldHint}
	}
	return denied(CapSocket, ENOTSUP)
}

func (g Grant) decideHTTP() Verdict {
	if !g.Claim.OpenWorld {
		return Verdict{Decision: Violate, Hint: OpenWorldHint}
	}
	return denied(CapHTTP, EACCES)
}
