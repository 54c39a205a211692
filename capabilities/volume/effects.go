package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

const (
	detailDir  = "directory"
	detailList = "list"
	// DetailTimes is the detail of an effect that sets times and does nothing else.
	DetailTimes = "times"

	maxEffects = 1000
)

// Effects returns what the call read and then what it would leave, each sorted
// by path; mount is put before paths. Of what was read, directories that were
// listed have the detail "list". Directories that were made or removed have
// the detail "directory"; what was moved says "renamed from" its old path, and
// is deleted there. A file or directory of which only the times were set is
// overwritten, with no bytes and the detail "times".
//
// At most 1000 effects are returned, and reads never crowd out changes: when
// some are left out, the last one of its sort says how many more there are. When the base
// cannot be read, effects may be missing; [Overlay.Change] then fails.
func (o *Overlay) Effects(mount string) []capabilities.Effect {
	reads, left := o.Split(mount)
	return append(reads, bound(left, maxEffects-len(reads))...)
}

// Split returns the reads that Effects returns, and all of [Overlay.Left].
func (o *Overlay) Split(mount string) (reads, left []capabilities.Effect) {
	left = o.changes(mount)
	return bound(o.reads(mount), max(maxEffects/2, maxEffects-len(left))), left
}

// bound cuts a list to at most n effects, the last of which tells of the rest.
func bound(list []capabilities.Effect, n int) []capabilities.Effect {
	if len(list) <= n {
		return list
	}
	more := list[n-1]
	more.Detail = fmt.Sprintf("and %d more", len(list)-n)
	return append(list[:n-1:n-1], more)
}

func (o *Overlay) reads(mount string) []capabilities.Effect {
	var list []capabilities.Effect
	for path, n := range o.read {
		list = append(list, capabilities.Effect{
			Verb: capabilities.Read, Kind: capabilities.KindFile, Object: guestPath(mount, path), Bytes: n,
		})
	}
	for path := range o.listed {
		list = append(list, capabilities.Effect{
			Verb: capabilities.Read, Kind: capabilities.KindFile, Object: guestPath(mount, path), Detail: detailList,
		})
	}
	slices.SortFunc(list, func(a, b capabilities.Effect) int { return strings.Compare(a.Object, b.Object) })
	return list
}

// Left returns all that the call would leave, as Effects does but for the
// reads, and complete. The budget bounds it.
func (o *Overlay) Left(mount string) []capabilities.Effect { return o.changes(mount) }

func (o *Overlay) changes(mount string) []capabilities.Effect {
	var list []capabilities.Effect
	for _, l := range o.delta().lefts {
		e := capabilities.Effect{
			Verb: l.verb, Kind: capabilities.KindFile, Object: guestPath(mount, l.path), Bytes: l.bytes, Detail: l.detail,
		}
		if l.from != "" {
			e.Detail = strings.TrimLeft(e.Detail+" renamed from "+guestPath(mount, l.from), " ")
		}
		list = append(list, e)
	}
	return list
}

// guestPath returns where a guest sees a path of the volume.
func guestPath(mount, path string) string {
	mount = strings.TrimRight(mount, "/")
	switch {
	case path != ".":
		return mount + "/" + path
	case mount == "":
		return "/"
	}
	return mount
}
