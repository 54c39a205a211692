package undo

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// maxID bounds the id of a call, in bytes.
const maxID = 256

// valid returns [ErrInvalid] for a record that Build does not make.
func (r *Record) valid() error {
	switch {
	case !validID(r.CallID):
		return invalid("call id %q", r.CallID)
	case r.Undoes != "" && !validID(r.Undoes), r.UndoneBy != "" && !validID(r.UndoneBy):
		return invalid("call ids of undo")
	case r.Principal == "", r.Package == "":
		return invalid("principal and package are needed")
	case !plainTime(r.Time) || r.Time.IsZero():
		return invalid("time %v", r.Time)
	case !plainTime(r.HoldUntil), !plainTime(r.Expires):
		return invalid("times of keeping")
	case r.MoreEffects < 0, r.MoreLost < 0, r.Size < 0, len(r.Effects) > MaxEffects, len(r.Lost) > maxTold:
		return invalid("counts")
	}
	if err := r.validText(); err != nil {
		return err
	}
	last := ""
	for i, v := range r.Volumes {
		if i > 0 && v.Name <= last {
			return invalid("volume %q: order", v.Name)
		}
		last = v.Name
		if err := v.valid(); err != nil {
			return err
		}
	}
	return r.validKeys()
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func validID(id string) bool { return id != "" && len(id) <= maxID && utf8.ValidString(id) }

// validText refuses what JSON cannot carry.
func (r *Record) validText() error {
	list := []string{r.Principal, r.Package, r.Tool, r.Arguments}
	list = append(list, r.Outbox...)
	for _, e := range r.Effects {
		list = append(list, string(e.Kind), e.Object, e.Detail)
	}
	for _, l := range r.Lost {
		list = append(list, l.Object, string(l.Why))
	}
	for _, s := range list {
		if !utf8.ValidString(s) {
			return invalid("text %q", s)
		}
	}
	return nil
}

// plainTime reports whether a time is one that Build writes.
func plainTime(t time.Time) bool {
	return t.IsZero() || (t.Location() == time.UTC && !t.Before(minTime) && !t.After(maxTime))
}

var (
	minTime = time.Unix(0, math.MinInt64).UTC()
	maxTime = time.Unix(0, math.MaxInt64).UTC()
)

// plain returns a time as records have it.
func plain(t time.Time) time.Time {
	t = t.Round(0).UTC()
	switch {
	case t.IsZero():
		return time.Time{}
	case t.Before(minTime):
		return minTime
	case t.After(maxTime):
		return maxTime
	}
	return t
}

func (r *Record) validKeys() error {
	last := ""
	for i, k := range r.Keys {
		switch {
		case k.Name == "" || !utf8.ValidString(k.Name):
			return invalid("key %q", k.Name)
		case i > 0 && k.Name <= last:
			return invalid("key %q: order", k.Name)
		}
		last = k.Name
		if !keyState(k.Left) || k.Left.Content != nil || !keyState(k.Was) || !k.Was.contentValid(false) {
			return invalid("key %q", k.Name)
		}
	}
	return nil
}

func keyState(s State) bool {
	switch s.Kind {
	case Absent:
		return s.bare()
	case Value:
		return s.Mode == 0 && s.ModTime.IsZero() && s.Target == "" && s.From == "" && s.Size >= 0
	case Dir, File, Link, Special:
	}
	return false
}

// bare reports whether a state says nothing but its kind.
func (s State) bare() bool {
	return s.Mode == 0 && s.ModTime.IsZero() && s.Size == 0 && s.Digest == store.Digest{} &&
		s.Target == "" && s.From == "" && s.Content == nil
}

func (v Volume) valid() error {
	if !utf8.ValidString(v.Name) || !utf8.ValidString(v.Path) {
		return invalid("volume %q", v.Name)
	}
	left := map[string]State{}
	last := ""
	for i, p := range v.Paths {
		switch {
		case !fs.ValidPath(p.Path) || strings.ContainsRune(p.Path, 0):
			return invalid("path %q", p.Path)
		case i > 0 && p.Path <= last:
			return invalid("path %q: order", p.Path)
		case (p.Path == "." || p.Aside) && (p.Left.Kind != Dir || p.Was.Kind != Dir):
			return invalid("path %q: no directory", p.Path)
		}
		last, left[p.Path] = p.Path, p.Left
	}
	taken := map[string]bool{}
	for _, p := range v.Paths {
		if !pathState(p.Left) || p.Left.From != "" || p.Left.Content != nil || !pathState(p.Was) {
			return invalid("path %q", p.Path)
		}
		if from := p.Was.From; from != "" {
			if taken[from] || left[from].Kind != p.Was.Kind || left[from].Target != p.Was.Target {
				return invalid("path %q: from %q", p.Path, from)
			}
			taken[from] = true
		}
		if !p.Was.contentValid(p.Was.From != "") || !p.Was.keptIn(left[p.Was.From]) {
			return invalid("path %q: content", p.Path)
		}
	}
	return nil
}

func pathState(s State) bool {
	if s.Mode&^fs.ModePerm != 0 || !plainTime(s.ModTime) || s.Size < 0 || !utf8.ValidString(s.Target) {
		return false
	}
	switch s.Kind {
	case Absent:
		return s.bare()
	case Dir:
		return s.Size == 0 && s.Digest == store.Digest{} && s.Target == "" && s.From == "" && s.Content == nil
	case File:
		return s.Target == ""
	case Link:
		return s.Target != "" && s.Mode == 0 && s.ModTime.IsZero() && s.Size == 0 && s.Digest == store.Digest{} && s.Content == nil
	case Special:
		return s.Mode == 0 && s.ModTime.IsZero() && s.Size == 0 && s.Target == "" && s.Digest == store.Digest{} && s.Content == nil
	case Value:
	}
	return false
}

// contentValid reports whether the content of a state is as long as it says.
func (s State) contentValid(kept bool) bool {
	c := s.Content
	switch {
	case c == nil:
		return true
	case s.Kind != File && s.Kind != Value:
		return false
	case len(c.Inline) > 0:
		return c.Chunk == 0 && len(c.Chunks) == 0 && int64(len(c.Inline)) == s.Size && s.Size <= maxInline
	case s.Size == 0:
		return c.Chunk == 0 && len(c.Chunks) == 0
	case c.Chunk <= 0 || c.Chunk > store.MaxBlob || int64(len(c.Chunks)) != chunks(s.Size, c.Chunk):
		return false
	}
	for _, k := range c.Chunks {
		if (k.Kept() && !kept) || (k.Zeros && k.Blob != store.Digest{}) {
			return false
		}
	}
	return true
}

// chunks returns how many chunks a content has.
func chunks(size, chunk int64) int64 { return (size-1)/chunk + 1 }

// keptIn reports whether what is kept of a content is in what the call left.
func (s State) keptIn(left State) bool {
	if s.Content == nil {
		return true
	}
	for i, k := range s.Content.Chunks {
		if _, to := s.Content.chunkAt(i, s.Size); k.Kept() && to > left.Size {
			return false
		}
	}
	return true
}
