package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const (
	// DefaultMaxBytes is what the old contents of one call may take, in bytes.
	DefaultMaxBytes = 256 << 20

	maxInlines = 1 << 20  // what a record holds inline, in bytes
	maxNames   = 16 << 20 // what a record may take besides contents, in bytes, about
	entryCost  = 512      // of which each path or key takes so much, and its name twice
)

// Options of [Build].
type Options struct {
	// MaxBytes bounds the old contents that are kept; default [DefaultMaxBytes].
	MaxBytes int64
	// Blobs keeps the contents that are too large for the record itself; nil: such
	// contents cannot be taken back.
	Blobs store.Blobs
}

// Tree is what a call did in one volume.
type Tree struct {
	Name   string
	Path   string        // where the guest sees it
	Base   volume.Base   // what was there
	Result volume.Base   // what the call would leave
	Steps  []volume.Step // of the change that leads from one to the other
}

// Build returns the record of what a call would leave, without the fields that
// say which call it is. It reads old contents as a stream and keeps the larger
// ones in blobs; a [volume.Content] of a base that has a method
//
//	Chunks() (size int, digests []store.Digest, ok bool)
//
// is not read: its content is in blobs of that size already, the zero digest being
// that of zeros. What is beyond the bounds, or cannot be read or put back, is in the record's Lost.
//
// It returns the errors of the bases and of the blobs, [volume.ErrConflict] when
// a file turns out to be shorter than it was, and [ErrInvalid] for a change that
// no overlay makes. What it put in blobs by then is pruned by the store.
func Build(ctx context.Context, o Options, trees []Tree, keys []KeyChange) (*Record, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	b := &builder{
		collector: collector{blobs: o.Blobs, left: o.MaxBytes, inline: maxInlines, names: maxNames},
		moved:     o.MaxBytes, record: &Record{},
	}
	trees = slices.SortedFunc(slices.Values(trees), func(a, b Tree) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range trees {
		if err := b.tree(ctx, t); err != nil {
			return nil, fmt.Errorf("volume %q: %w", t.Name, err)
		}
	}
	for _, k := range changedKeys(keys) {
		if err := b.key(ctx, k); err != nil {
			return nil, fmt.Errorf("key %q: %w", k.Name, err)
		}
	}
	b.record.Size = b.stored
	return b.record, nil
}

// builder makes one record.
type builder struct {
	collector
	moved  int64 // bytes left for reading files that were only moved
	record *Record
}

// room reports whether there is room for one more path or key, and takes it.
func (b *builder) room(object, name string) bool {
	if !utf8.ValidString(name) {
		b.record.Lose(object, WhyName)
		return false
	}
	if !b.list(1, int64(entryCost+2*len(name))) {
		b.record.Lose(object, WhyMany)
		return false
	}
	return true
}

// grove is one tree with what its steps say.
type grove struct {
	Tree
	volume Volume
	aside  map[string]bool        // by path that changed: whether only the names in it did
	puts   map[string]volume.Step // by path
	to     map[string]string      // where a path of the base was moved to
	lefts  map[string]State
	was    *looker // at the base
	now    *looker // at the result
}

func (b *builder) tree(ctx context.Context, t Tree) error {
	if len(t.Steps) == 0 {
		return nil
	}
	g := sortSteps(t)
	paths := slices.Sorted(maps.Keys(g.aside))
	for _, p := range paths {
		left, _, err := g.now.state(p)
		if err != nil {
			return err
		}
		g.lefts[p] = left
	}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.path(ctx, g, p); err != nil {
			return err
		}
	}
	if len(g.volume.Paths) > 0 {
		b.record.Volumes = append(b.record.Volumes, g.volume)
	}
	return nil
}

// sortSteps finds out which paths changed, and what was moved.
func sortSteps(t Tree) *grove {
	g := &grove{
		Tree: t, volume: Volume{Name: t.Name, Path: t.Path},
		aside: map[string]bool{}, puts: map[string]volume.Step{}, to: map[string]string{}, lefts: map[string]State{},
		was: look(t.Base), now: look(t.Result),
	}
	for _, s := range t.Steps {
		if s.Action != volume.ActTimes {
			g.aside[s.Path] = false
		}
	}
	for _, s := range t.Steps {
		if s.Action != volume.ActPut && s.Action != volume.ActLink {
			continue
		}
		g.puts[s.Path] = s
		// What stays where it was has been made again, with the same content.
		if _, left := g.aside[s.Base]; left && s.Base != s.Path {
			g.to[s.Base] = s.Path
		}
	}
	set := func(path string, aside bool) {
		if _, known := g.aside[path]; !known {
			g.aside[path] = aside
		}
	}
	for _, s := range t.Steps {
		if s.Action == volume.ActTimes {
			set(s.Path, !s.Was.IsZero())
		}
	}
	for _, s := range t.Steps {
		if s.Action != volume.ActTimes {
			set(dirOf(s.Path), true)
		}
	}
	return g
}

func dirOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// path records one path.
func (b *builder) path(ctx context.Context, g *grove, path string) error {
	was, info, err := g.was.state(path)
	if err != nil {
		return err
	}
	p := Path{Path: path, Aside: g.aside[path], Left: g.lefts[path], Was: was}
	if p.Aside && (was.Kind != Dir || p.Left.Kind != Dir) {
		return fmt.Errorf("%w: %q is no directory", ErrInvalid, path)
	}
	if (was.Kind == Absent && p.Left.Kind == Absent) || !b.room(g.volume.object(path), path) {
		return nil
	}
	g.from(&p)
	if err := b.files(ctx, g, &p, info); err != nil {
		return err
	}
	if why := p.lost(g.lefts[p.Was.From]); why != "" {
		b.record.Lose(g.volume.object(path), why)
	}
	g.volume.Paths = append(g.volume.Paths, p)
	return nil
}

// from says where the call left what was at a path: there, or where it was moved.
func (g *grove) from(p *Path) {
	if p.Was.Kind != File && p.Was.Kind != Link && p.Was.Kind != Special {
		return
	}
	from, moved := g.to[p.Path]
	if !moved {
		if p.Was.Kind != File {
			return // what is there now is another one
		}
		from = p.Path
		if s, ok := g.puts[from]; ok && s.Base != "" && s.Base != from {
			return // something else was moved there
		}
	}
	left, ok := g.lefts[from]
	if ok && left.Kind == p.Was.Kind && utf8.ValidString(from) {
		p.Was.From = from
	}
}

// files collects what was in a file, and the digest of what the call left.
func (b *builder) files(ctx context.Context, g *grove, p *Path, was volume.Info) error {
	if p.Left.Kind == File {
		if err := b.digest(ctx, g, p); err != nil {
			return err
		}
	}
	if p.Was.Kind != File {
		return nil
	}
	w := source{base: g.Base, path: p.Path, size: was.Size, object: g.volume.object(p.Path)}
	if from := p.Was.From; from != "" {
		w.left, w.leftPath, w.leftSize = g.Result, from, g.lefts[from].Size
		w.same = g.sameRanges(from, p.Path)
	}
	content, digest, err := b.content(ctx, w)
	var why *lostError
	switch {
	case errors.As(err, &why):
		b.record.Lose(w.object, why.why)
		return nil
	case err != nil:
		return err
	}
	p.Was.Content, p.Was.Digest = content, digest
	return nil
}

// digest computes the digest of a file that the call left. Where the content is
// that of a file of the base, it is left out when there is too much to read.
func (b *builder) digest(ctx context.Context, g *grove, p *Path) error {
	s, put := g.puts[p.Path]
	whole := !put || (s.Base != "" && len(s.Extents) == 0 && s.Keep == s.Size)
	if whole {
		if b.moved -= p.Left.Size; b.moved < 0 {
			return nil
		}
	}
	d, err := digestOf(ctx, g.Result, p.Path, p.Left.Size)
	switch {
	case err == nil:
		p.Left.Digest = d
	case whole && unreadable(err):
		return nil
	}
	return err
}

// sameRanges returns a function that reports which ranges of a file of the base
// are known to be in the file that the call left of it. Of a file that was not
// put, only the times were set.
func (g *grove) sameRanges(left, base string) func(from, to int64) bool {
	s, put := g.puts[left]
	return func(from, to int64) bool {
		return !put || s.Base == base && to <= s.Keep && !slices.ContainsFunc(s.Extents, func(e volume.Extent) bool {
			return e.Offset < to && from < e.Offset+int64(len(e.Data))
		})
	}
}

// lost returns why what was at a path could not be put back, besides its content:
// from is what the call left where it was moved to.
func (p Path) lost(from State) Why {
	moved := p.Was.From != ""
	switch p.Was.Kind {
	case Special:
		if !moved {
			return WhySpecial
		}
	case Link:
		if !utf8.ValidString(p.Was.Target) || p.Was.Target == "" {
			return WhyName
		}
		if !moved && !canLink {
			return WhyLink
		}
	case File, Dir:
		if p.Left.Kind == p.Was.Kind || canChmod {
			return "" // what takes the place of a file or directory has its mode
		}
		mode := fs.FileMode(newFileMode)
		if p.Was.Kind == Dir {
			mode = newDirMode
		}
		if moved {
			mode = from.Mode
		}
		if p.Was.Mode != mode {
			return WhyMode
		}
	case Absent, Value:
	}
	return ""
}
