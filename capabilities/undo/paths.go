package undo

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// pair is a path with both sides of it.
type pair struct {
	Path
	object   string
	was      side
	left     side
	from     string // object that was moved here
	fromWas  side
	to       string // object to which it was moved
	appended bool
	same     bool // only the times were set
}

const (
	detailDir   = "directory"
	detailTimes = "times"
)

// path adds the effects on one path.
func (d *drawing) path(ctx context.Context, p pair) error {
	switch {
	case p.Aside:
		return nil
	case p.Was.Kind == p.Left.Kind && p.Was.Kind != Absent:
		return d.replaced(ctx, p)
	}
	if p.Was.Kind != Absent {
		it := p.item(capabilities.Delete, p.Was)
		moved := p.to != ""
		if moved {
			it.Detail = strings.TrimLeft(it.Detail+" renamed to "+p.to, " ")
		}
		if err := d.add(ctx, it, p.was, side{}, p.Was.Kind == File && !moved); err != nil {
			return err
		}
	}
	if p.Left.Kind == Absent {
		return nil
	}
	it, was := p.item(capabilities.Create, p.Left), side{}
	if p.from != "" {
		it.Detail, was = strings.TrimLeft(it.Detail+" renamed from "+p.from, " "), p.fromWas
	}
	return d.add(ctx, it, was, p.left, p.Left.Kind == File)
}

// replaced adds what took the place of something of its kind.
func (d *drawing) replaced(ctx context.Context, p pair) error {
	it := p.item(capabilities.Overwrite, p.Left)
	switch {
	case p.from != "":
		it.Detail = strings.TrimLeft(it.Detail+" renamed from "+p.from, " ")
	case p.Left.Kind == Dir || p.same:
		it.Detail, it.Bytes = detailTimes, 0
		return d.add(ctx, it, p.was, p.left, false)
	case p.appended:
		it.Verb, it.Bytes = capabilities.Append, p.Left.Size-p.Was.Size
	}
	return d.add(ctx, it, p.was, p.left, p.Left.Kind == File)
}

func (p pair) item(v capabilities.Verb, s State) Item {
	e := capabilities.Effect{Verb: v, Kind: capabilities.KindFile, Object: p.object, Bytes: s.Size}
	switch s.Kind {
	case Dir:
		e.Detail = detailDir
	case Link:
		e.Bytes = int64(len(s.Target))
	case File, Special, Absent, Value:
	}
	return Item{Effect: e}
}

// Preview shows what a call would leave, before its commit.
func Preview(ctx context.Context, s Show, trees []Tree, keys []KeyChange) (*Diff, error) {
	d := newDrawing(s)
	for _, t := range trees {
		if err := d.tree(ctx, t); err != nil {
			return nil, volumeError(t.Name, err)
		}
	}
	for _, k := range changedKeys(keys) {
		was, left := valueSide(d.KeyName(k.Name), k.Was), valueSide(d.KeyName(k.Name), k.Left)
		if err := d.key(ctx, d.KeyName(k.Name), was, left); err != nil {
			return nil, err
		}
	}
	d.others()
	return &d.diff, nil
}

func valueSide(name string, v KeyValue) side {
	if !v.Exists {
		return side{}
	}
	return side{name, int64(len(v.Data)), func(context.Context) ([]byte, Note, error) { return v.Data, "", nil }}
}

// key adds the effect on one key.
func (d *drawing) key(ctx context.Context, name string, was, left side) error {
	it := Item{Effect: capabilities.Effect{Kind: capabilities.KindKey, Object: name, Bytes: left.size}}
	switch {
	case was.read == nil && left.read == nil:
		return nil
	case was.read == nil:
		it.Verb = capabilities.Create
	case left.read == nil:
		it.Verb, it.Bytes = capabilities.Delete, was.size
	default:
		it.Verb = capabilities.Overwrite
	}
	return d.add(ctx, it, was, left, true)
}

// tree adds what a call would leave in a volume.
func (d *drawing) tree(ctx context.Context, t Tree) error {
	g := sortSteps(t)
	froms := map[string]string{}
	for was, now := range g.to {
		froms[now] = was
	}
	for _, path := range slices.Sorted(maps.Keys(g.aside)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.aside[path] {
			continue
		}
		p := pair{Path: Path{Path: path}, object: g.volume.object(path)}
		var err error
		if p.Was, _, err = g.was.state(path); err != nil {
			return err
		}
		if p.Left, _, err = g.now.state(path); err != nil {
			return err
		}
		p.was, p.left = fileSide(t.Base, p.object, path, p.Was), fileSide(t.Result, p.object, path, p.Left)
		if err := g.moves(&p, froms); err != nil {
			return err
		}
		if err := d.path(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// moves fills in where a path comes from and goes to.
func (g *grove) moves(p *pair, froms map[string]string) error {
	if to, ok := g.to[p.Path.Path]; ok {
		p.to = g.volume.object(to)
	}
	s, put := g.puts[p.Path.Path]
	p.same = !put && p.Was.Kind == File && p.Left.Kind == File
	p.appended = put && p.Was.Size > 0 && p.Left.Size > p.Was.Size && g.sameRanges(p.Path.Path, p.Path.Path)(0, p.Was.Size)
	from, ok := froms[p.Path.Path]
	if !ok {
		return nil
	}
	p.from = g.volume.object(from)
	was, _, err := g.was.state(s.Base)
	p.fromWas = fileSide(g.Base, p.from, s.Base, was)
	return err
}

// fileSide is a file of a tree; nothing for what is no file.
func fileSide(b volume.Base, object, path string, s State) side {
	if s.Kind != File {
		return side{}
	}
	return side{object, s.Size, func(context.Context) ([]byte, Note, error) {
		f, err := b.Open(path)
		if err != nil {
			if unreadable(err) {
				return nil, NoteDenied, nil
			}
			return nil, "", err
		}
		defer f.Close()
		data := make([]byte, s.Size)
		return data, "", readFull(f, data, 0)
	}}
}
