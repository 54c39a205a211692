package undo

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
)

// What a diff shows by default.
const (
	DefaultMaxItems = 200
	DefaultMaxFile  = 256 << 10 // bytes
	DefaultMaxText  = 1 << 20   // bytes
)

// Show says how much a [Diff] shows. The zero value shows the defaults.
type Show struct {
	MaxItems int // effects; default [DefaultMaxItems]
	MaxFile  int // bytes of each side of a file or value that is shown as text; default [DefaultMaxFile]
	MaxText  int // bytes of all such texts together; default [DefaultMaxText]
	// Effects are those of the call, where they are known: they tell appending and
	// inserting apart, and effects on other than files and keys are shown with them.
	// A record has its own.
	Effects []capabilities.Effect
	KeyName func(name string) string // how a key is shown; nil: as its name in the store
}

func (s Show) defaults() Show {
	if s.MaxItems <= 0 {
		s.MaxItems = DefaultMaxItems
	}
	if s.MaxFile <= 0 {
		s.MaxFile = DefaultMaxFile
	}
	if s.MaxText <= 0 {
		s.MaxText = DefaultMaxText
	}
	if s.KeyName == nil {
		s.KeyName = func(name string) string { return name }
	}
	return s
}

// Diff is what a call left or would leave, for people. Texts are as the call's
// files have them: see the package's comment.
type Diff struct {
	Items []Item `json:"items"`
	More  int    `json:"more,omitempty"` // effects that are not shown
}

// Item is one effect.
type Item struct {
	capabilities.Effect
	Was  *int64 `json:"was,omitempty"`  // bytes that were there; nil: no file or value
	Left *int64 `json:"left,omitempty"` // bytes that there are
	Text string `json:"text,omitempty"` // unified diff of both
	Note Note   `json:"note,omitempty"` // why there is no text where there could be one
}

// Note says why a difference is not shown as text.
type Note string

// The notes.
const (
	NoteBinary  Note = "binary"
	NoteLarge   Note = "too large to show"
	NoteChanged Note = "changed since"
	NoteGone    Note = "no longer kept"
	NoteDenied  Note = "not readable"
	NoteSame    Note = "same content"
)

// side is one side of a difference.
type side struct {
	name string // guest path or key
	size int64
	read func(ctx context.Context) ([]byte, Note, error) // nil: there is nothing
}

// drawing is a diff in the making.
type drawing struct {
	Show
	diff    Diff
	text    int // bytes so far
	effects map[string]capabilities.Effect
}

func newDrawing(s Show) *drawing {
	d := &drawing{Show: s.defaults(), effects: map[string]capabilities.Effect{}}
	for _, e := range s.Effects {
		if changes(e.Verb) {
			d.effects[effectKey(e.Kind, e.Object, e.Verb)] = e
		}
	}
	return d
}

// changes reports whether effects of a verb replace something of the same kind,
// or leave it.
func changes(v capabilities.Verb) bool {
	switch v {
	case capabilities.Create, capabilities.Append, capabilities.Insert, capabilities.Overwrite, capabilities.Delete:
		return true
	case capabilities.Read, capabilities.Send:
	}
	return false
}

// effectKey tells effects on one object apart: what took the place of something
// of another kind was made, and the other deleted.
func effectKey(k capabilities.Kind, object string, v capabilities.Verb) string {
	switch v {
	case capabilities.Create, capabilities.Delete:
	case capabilities.Append, capabilities.Insert, capabilities.Overwrite, capabilities.Read, capabilities.Send:
		v = capabilities.Overwrite
	}
	return v.String() + " " + string(k) + " " + object
}

// full reports whether no more items are shown, and counts one.
func (d *drawing) full() bool {
	if len(d.diff.Items) < d.MaxItems {
		return false
	}
	d.diff.More++
	return true
}

// add adds an item, as the call's own effect has it where there is one.
func (d *drawing) add(ctx context.Context, it Item, was, left side, compare bool) error {
	if d.full() {
		return nil
	}
	if was.read != nil {
		it.Was = &was.size
	}
	if left.read != nil {
		it.Left = &left.size
	}
	if compare {
		if err := d.compare(ctx, &it, was, left); err != nil {
			return err
		}
	}
	if e, ok := d.effects[effectKey(it.Kind, it.Object, it.Verb)]; ok {
		e.Detail = cmp.Or(e.Detail, it.Detail)
		it.Effect = e
	}
	d.diff.Items = append(d.diff.Items, it)
	return nil
}

// others adds the effects on what is neither file nor key.
func (d *drawing) others() {
	for _, e := range d.Effects {
		if e.Verb == capabilities.Read || e.Kind == capabilities.KindFile || e.Kind == capabilities.KindKey || d.full() {
			continue
		}
		d.diff.Items = append(d.diff.Items, Item{Effect: e})
	}
}

// compare shows the difference of two sides, and finds out what sort it is.
func (d *drawing) compare(ctx context.Context, it *Item, was, left side) error {
	a, note, err := d.load(ctx, was)
	if err != nil || note != "" {
		it.Note = note
		return err
	}
	b, note, err := d.load(ctx, left)
	if err != nil || note != "" {
		it.Note = note
		return err
	}
	if it.Verb == capabilities.Overwrite && len(b) > len(a) && strings.HasPrefix(b, a) {
		it.Verb, it.Bytes = capabilities.Append, int64(len(b)-len(a))
	}
	switch {
	case a == b && was.read != nil && left.read != nil:
		it.Note = NoteSame
		return nil
	case !isText(a) || !isText(b):
		it.Note = NoteBinary
		return nil
	case len(a)+len(b) > 4*(d.MaxText-d.text):
		it.Note = NoteLarge // there is no use in comparing
		return nil
	}
	text, ok := unified(nameOf(was), nameOf(left), a, b)
	if !ok || len(text) > d.MaxText-d.text {
		it.Note = NoteLarge
		return nil
	}
	it.Text = text
	d.text += len(text)
	return nil
}

func nameOf(s side) string {
	if s.read == nil {
		return nothing
	}
	return quoted(s.name)
}

// load returns the content of a side, or why it is not shown.
func (d *drawing) load(ctx context.Context, s side) (string, Note, error) {
	switch {
	case s.read == nil:
		return "", "", nil
	case s.size > int64(d.MaxFile):
		return "", NoteLarge, nil
	}
	b, note, err := s.read(ctx)
	return string(b), note, err
}

// isText reports whether a content is shown as text.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }
