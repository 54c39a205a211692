package tool

import (
	"fmt"
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

// Lines returns each relaxation as people see it, and as the operator's
// configuration may name it.
func (r Relaxations) Lines() []string {
	var ls []string
	for _, v := range r.Volatile {
		ls = append(ls, "volatile "+v)
	}
	for _, h := range r.History {
		ls = append(ls, "history of "+h.Of+" under "+h.Under)
	}
	for _, t := range r.Transitions {
		ls = append(ls, fmt.Sprintf("transition at %s from %q to %q", t.At, t.From, t.To))
	}
	if r.Recoverable > 0 {
		ls = append(ls, "recoverable "+r.Recoverable.String())
	}
	return ls
}

// Only returns those relaxations for whose line keep reports true.
func (r Relaxations) Only(keep func(line string) bool) Relaxations {
	var out Relaxations
	for _, v := range r.Volatile {
		if one := (Relaxations{Volatile: []string{v}}); keep(one.Lines()[0]) {
			out.Volatile = append(out.Volatile, v)
		}
	}
	for _, h := range r.History {
		if one := (Relaxations{History: []History{h}}); keep(one.Lines()[0]) {
			out.History = append(out.History, h)
		}
	}
	for _, t := range r.Transitions {
		if one := (Relaxations{Transitions: []Transition{t}}); keep(one.Lines()[0]) {
			out.Transitions = append(out.Transitions, t)
		}
	}
	if one := (Relaxations{Recoverable: r.Recoverable}); r.Recoverable > 0 && keep(one.Lines()[0]) {
		out.Recoverable = r.Recoverable
	}
	return out
}
