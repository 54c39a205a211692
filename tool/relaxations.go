package tool

import (
	"regexp"
	"strings"
	"time"
)

// maxRecoverable bounds for how long a package may ask a host to keep what a
// call lost.
const maxRecoverable = 10 * 365 * 24 * time.Hour

var pointerEscape = regexp.MustCompile(`~([^01]|$)`)

func (d *decoder) relaxations(v value, volumes []VolumeRequest) Relaxations {
	var r Relaxations
	if !v.present() {
		return r
	}
	o := v.object(fieldsOf["relaxations"]...)
	inVolume := func(p string) bool {
		for _, vol := range volumes {
			if p != vol.Path && within(vol.Path, p) {
				return guestPath(p)
			}
		}
		return false
	}
	at := func(s string) bool {
		file, pointer, found := strings.Cut(s, "#")
		return found && inVolume(file) && strings.HasPrefix(pointer, "/") &&
			!pointerEscape.MatchString(pointer) && hiddenIn(pointer) == ""
	}
	const place = "write a file of a requested volume and a JSON pointer, for example /data/notes.json#/next_id"
	r.Volatile = o.field("volatile").few().texts(place, at)
	for _, item := range o.field("history").few().each("write [{of: /data/book.md, under: /data/history}]") {
		h := item.object(fieldsOf["relaxations.history[]"]...)
		const mend = "write a path in a requested volume"
		r.History = append(r.History, History{
			Of:    h.required("of").pattern(inVolume, mend),
			Under: h.required("under").pattern(inVolume, mend),
		})
	}
	for _, item := range o.field("transitions").few().each(`write [{at: "/data/c.json#/status", from: a, to: b}]`) {
		t := item.object(fieldsOf["relaxations.transitions[]"]...)
		r.Transitions = append(r.Transitions, Transition{
			At:   t.required("at").pattern(at, place),
			From: t.required("from").shown(256, true, "write the old text, in quotes where it is a number"),
			To:   t.required("to").shown(256, true, "write the new text, in quotes where it is a number"),
		})
	}
	r.Recoverable = o.field("recoverable").duration(maxRecoverable)
	return r
}
