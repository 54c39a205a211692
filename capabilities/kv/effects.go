package kv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/lazymap"
)

const maxEffects = 1000

// Effects returns what the call read and then what it would leave, each sorted
// by key. A range that was read has the detail "scan", and where it ended. A key
// that was only appended to or incremented since the base is appended to, with the
// detail "append", "increment by n" or both; one that was made is created, however
// that was done.
//
// At most 1000 effects are returned, and reads never crowd out changes: when
// some are left out, the last one of its sort says how many more there are.
func (o *Overlay) Effects() []capabilities.Effect {
	reads, left := o.Split()
	return append(reads, bound(left, maxEffects-len(reads))...)
}

// Split returns the reads that Effects returns, and all of [Overlay.Left].
func (o *Overlay) Split() (reads, left []capabilities.Effect) {
	left = o.Left()
	return bound(o.Reads(), max(maxEffects/2, maxEffects-len(left))), left
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

// Reads returns what the call read, as Effects does, and complete.
func (o *Overlay) Reads() []capabilities.Effect {
	var list []capabilities.Effect
	for _, key := range lazymap.Sorted(o.reads) {
		list = append(list, effect(capabilities.Read, key, o.reads[key], ""))
	}
	for _, s := range o.spans() {
		l := o.ranges[s]
		detail := "scan"
		if l.asked != "" {
			detail += " to " + Show(l.asked)
		}
		list = append(list, effect(capabilities.Read, s.from, l.bytes, detail))
	}
	return list
}

// Left returns all that the call would leave, as Effects does but for the
// reads, and complete. The budget bounds it.
func (o *Overlay) Left() []capabilities.Effect {
	var list []capabilities.Effect
	for _, key := range o.order {
		if verb, detail, changed := o.writes[key].verb(); changed {
			w := o.writes[key]
			n := int64(len(w.value))
			if verb == capabilities.Append && !w.increased {
				n = w.appended
			}
			list = append(list, effect(verb, key, n, detail))
		}
	}
	return list
}

// Lost returns those effects of [Overlay.Left] that take away what was there:
// another value, or none. Without them the change is additive.
func (o *Overlay) Lost() []capabilities.Effect {
	return slices.DeleteFunc(o.Left(), func(e capabilities.Effect) bool {
		return e.Verb == capabilities.Create || e.Verb == capabilities.Append
	})
}

// verb returns what a key went through since the base, if anything.
func (w *write) verb() (v capabilities.Verb, detail string, changed bool) {
	switch {
	case w.same():
		return 0, "", false
	case !w.base.ok:
		return capabilities.Create, "", true
	case w.deleted:
		return capabilities.Delete, "", true
	case w.replaced:
		return capabilities.Overwrite, "", true
	}
	return capabilities.Append, w.detail(), true
}

func (w *write) detail() string {
	var parts []string
	if w.appended > 0 {
		parts = append(parts, "append")
	}
	if w.increased {
		by := "increment"
		// What was appended to a number may have left none.
		if n, err := Number(w.value); err == nil && w.appended == 0 {
			by += " by " + difference(w.base.number, n)
		}
		parts = append(parts, by)
	}
	return strings.Join(parts, ", ")
}

func effect(v capabilities.Verb, key string, bytes int64, detail string) capabilities.Effect {
	return capabilities.Effect{Verb: v, Kind: capabilities.KindKey, Object: Show(key), Bytes: bytes, Detail: detail}
}
