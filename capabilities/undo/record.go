package undo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// MaxEffects is how many effects a record tells of.
const MaxEffects = 200

// Kind is what there is at a path or key.
type Kind string

// The kinds. Value is that of keys, the others are those of paths.
const (
	Absent  Kind = "absent"
	Dir     Kind = "dir"
	File    Kind = "file"
	Link    Kind = "link"
	Special Kind = "special"
	Value   Kind = "value"
)

// Record is what a call committed, and what is needed to take it back. It is
// data: see [Record.Encode].
type Record struct {
	CallID    string    `json:"callId"`
	Principal string    `json:"principal"`
	Package   string    `json:"package"`
	Tool      string    `json:"tool"`
	Time      time.Time `json:"time"`
	Arguments string    `json:"arguments,omitempty"` // digest of the arguments, as the caller makes it

	// Effects are the first ones that the call had; MoreEffects is how many there
	// were besides. See [Record.Tell].
	Effects     []capabilities.Effect `json:"effects,omitempty"`
	MoreEffects int                   `json:"moreEffects,omitempty"`

	Volumes []Volume `json:"volumes,omitempty"` // sorted by name
	Keys    []Key    `json:"keys,omitempty"`    // sorted by name
	Outbox  []string `json:"outbox,omitempty"`  // keys of the messages that the commit released

	// Lost is what cannot be taken back; MoreLost is how much there is besides.
	Lost     []Loss `json:"lost,omitempty"`
	MoreLost int    `json:"moreLost,omitempty"`

	HoldUntil time.Time `json:"holdUntil,omitzero"` // the undo is guaranteed until then
	Expires   time.Time `json:"expires,omitzero"`   // when the store drops the record, see [Record.Writes]
	Size      int64     `json:"size,omitempty"`     // bytes of the blobs that it names

	Undoes   string `json:"undoes,omitempty"`   // the call that this one took back
	UndoneBy string `json:"undoneBy,omitempty"` // the call that took this one back
}

// Volume is what a call changed in one volume.
type Volume struct {
	Name  string `json:"name"`
	Path  string `json:"path"`  // where the guest sees it
	Paths []Path `json:"paths"` // sorted
	// Folder is the host's folder that the volume was, Shared the name of the managed
	// volume that packages share; neither: one of the package's own. They are for the
	// host, and no client is told.
	Folder string `json:"folder,omitempty"`
	Shared string `json:"shared,omitempty"`
}

// Path is one path that a call changed.
type Path struct {
	Path string `json:"path"` // in the volume, "." for its root
	// Aside: a directory of which the call changed the names in it only, and with
	// them its time.
	Aside bool  `json:"aside,omitempty"`
	Left  State `json:"left"`
	Was   State `json:"was"`
}

// Key is one key that a call changed.
type Key struct {
	Name string `json:"name"`
	Left State  `json:"left"`
	Was  State  `json:"was"`
}

// State is what there is at a path or key. What was there has its content, what
// the call left has its digest only.
type State struct {
	Kind    Kind         `json:"kind"`
	Mode    fs.FileMode  `json:"mode,omitempty"`    // of files and directories
	ModTime time.Time    `json:"modTime,omitzero"`  // of files and directories
	Size    int64        `json:"size,omitempty"`    // bytes, of files and values
	Digest  store.Digest `json:"digest,omitzero"`   // SHA-256 of a file or value, zero when it was not computed
	Target  string       `json:"target,omitempty"`  // of a link
	From    string       `json:"from,omitempty"`    // path where the call left it, changed perhaps: its own, or where it was moved to
	Content *Content     `json:"content,omitempty"` // of files and values that were there
}

// Loss is something that cannot be taken back.
type Loss struct {
	Object string `json:"object"` // guest path or key
	Why    Why    `json:"why"`
}

// Why says why something cannot be taken back.
type Why string

// The reasons.
const (
	WhyLarge      Why = "too large"                 // the bound on bytes was reached
	WhyMany       Why = "too many"                  // the bound on paths was reached
	WhyUnreadable Why = "not readable"              // the host may not read it
	WhySpecial    Why = "special file"              // a device, pipe or socket
	WhyLink       Why = "links cannot be made"      // and this one was removed
	WhyMode       Why = "permissions cannot be set" // and this one's are not those of a new file
	WhyName       Why = "name is not UTF-8"         // of a path, key or link target
	WhyWithdrawn  Why = "message was withdrawn"     // by an undo; nothing sends it again
)

// Errors of this package, matched with errors.Is.
var (
	// ErrChanged: something is not as the call left it. See [ChangedError].
	ErrChanged = errors.New("changed since the call")
	// ErrIncomplete: not all that the call did can be taken back.
	ErrIncomplete = errors.New("undo record is not complete")
	// ErrUndone: the call was taken back already.
	ErrUndone = errors.New("call was undone already")
	// ErrNotFound: there is no record of the call.
	ErrNotFound = errors.New("undo record not found")
	// ErrInvalid: a record, or its encoding, is none.
	ErrInvalid = errors.New("undo record is not valid")
	// ErrNoVolume: what a record is about is not there.
	ErrNoVolume = errors.New("no such volume")
)

// Complete reports whether all that the call committed can be taken back.
func (r *Record) Complete() bool { return len(r.Lost) == 0 && r.MoreLost == 0 }

// Empty reports whether there is nothing to take back.
func (r *Record) Empty() bool {
	return len(r.Keys) == 0 && !slices.ContainsFunc(r.Volumes, func(v Volume) bool { return len(v.Paths) > 0 })
}

// Tell sets the effects that the record tells of: the first [MaxEffects].
func (r *Record) Tell(effects []capabilities.Effect) {
	n := min(len(effects), MaxEffects)
	r.Effects, r.MoreEffects = slices.Clone(effects[:n]), len(effects)-n
}

// Blobs returns the blobs that the record names, each once, sorted.
func (r *Record) Blobs() []store.Digest {
	var list []store.Digest
	for s := range r.was {
		if s.Content != nil {
			list = append(list, s.Content.blobs()...)
		}
	}
	slices.SortFunc(list, func(a, b store.Digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// was yields all that was there.
func (r *Record) was(yield func(State) bool) {
	for _, v := range r.Volumes {
		for _, p := range v.Paths {
			if !yield(p.Was) {
				return
			}
		}
	}
	for _, k := range r.Keys {
		if !yield(k.Was) {
			return
		}
	}
}

// Lose notes what cannot be taken back.
func (r *Record) Lose(object string, why Why) {
	if len(r.Lost) >= maxTold {
		r.MoreLost++
		return
	}
	r.Lost = append(r.Lost, Loss{strings.ToValidUTF8(object, "\uFFFD"), why})
}

// maxTold bounds lists that are there to be read.
const maxTold = 100

// object returns where a guest sees a path of the volume.
func (v Volume) object(path string) string {
	mount := strings.TrimRight(v.Path, "/")
	switch {
	case path != ".":
		return mount + "/" + path
	case mount == "":
		return "/"
	}
	return mount
}

// IncompleteError says why a call cannot be taken back. It matches
// [ErrIncomplete].
type IncompleteError struct {
	Lost []Loss
	More int // how many there are besides
}

// Error names the first loss.
func (e *IncompleteError) Error() string {
	if len(e.Lost) == 0 {
		return ErrIncomplete.Error()
	}
	return fmt.Sprintf("%v: %s: %s%s", ErrIncomplete, e.Lost[0].Object, e.Lost[0].Why, others(len(e.Lost)-1+e.More))
}

// Is reports whether target is [ErrIncomplete].
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

func others(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
