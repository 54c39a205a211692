package tool

import (
	"regexp"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// maxRecoverable bounds for how long a package may ask a host to keep what a
// call lost.
const maxRecoverable = 10 * 365 * 24 * time.Hour

var pointerEscape = regexp.MustCompile(`~([^01]|$)`)

func (d *decoder) relaxations(v strictyaml.Value, volumes []VolumeRequest) Relaxations {
	var r Relaxations
	if !v.Present() {
		return r
	}
	o := v.Object(fieldsOf["relaxations"]...)
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
			!pointerEscape.MatchString(pointer) && strictyaml.HiddenIn(pointer) == ""
	}
	const place = "write a file of a requested volume and a JSON pointer, for example /data/notes.json#/next_id"
	r.Volatile = few(o.Field("volatile")).Texts(place, at)
	for _, item := range few(o.Field("history")).Each("write [{of: /data/book.md, under: /data/history}]") {
		h := item.Object(fieldsOf["relaxations.history[]"]...)
		const mend = "write a path in a requested volume"
		r.History = append(r.History, History{
			Of:    h.Required("of").Pattern(inVolume, mend),
			Under: h.Required("under").Pattern(inVolume, mend),
		})
	}
	for _, item := range few(o.Field("transitions")).Each(`write [{at: "/data/c.json#/status", from: a, to: b}]`) {
		t := item.Object(fieldsOf["relaxations.transitions[]"]...)
		r.Transitions = append(r.Transitions, Transition{
			At:   t.Required("at").Pattern(at, place),
			From: t.Required("from").Shown(256, true, "write the old text, in quotes where it is a number"),
			To:   t.Required("to").Shown(256, true, "write the new text, in quotes where it is a number"),
		})
	}
	r.Recoverable = o.Field("recoverable").Duration(maxRecoverable)
	return r
}
