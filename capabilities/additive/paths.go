package additive

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// tree judges one volume, path by path.
func (j *judge) tree(t *Tree) error {
	last := map[string]volume.Step{} // what is done to a path in the end, times aside
	moved := map[string]string{}     // where a path of the base went
	for _, s := range t.Steps {
		if s.Action == volume.ActTimes {
			continue
		}
		last[s.Path] = s
		if s.Base != "" && s.Base != s.Path {
			moved[s.Base] = s.Path
		}
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		if err := j.path(t, last[path], moved[path]); err != nil {
			return fmt.Errorf("%q: %w", guestPath(t.Path, path), err)
		}
	}
	return nil
}

// path judges what is done to one path; to is where the base's file went, if
// it did.
func (j *judge) path(t *Tree, s volume.Step, to string) error {
	was, there, err := lstat(t.Base, s.Path)
	if err != nil || !there {
		return err // what is new is free
	}
	is, there, err := lstat(t.Result, s.Path)
	if err != nil {
		return err
	}
	l := Loss{Object: guestPath(t.Path, s.Path)}
	switch {
	case !there && to != "":
		l.Why = whyRenamed
	case !there || s.Action == volume.ActRemove:
		l.Why = whyRemoved
	case was.Kind != is.Kind:
		l.Why = whyType(was.Kind, is.Kind)
	case was.Mode.Perm() != is.Mode.Perm():
		l.Why = whyMode(was.Mode, is.Mode)
	case s.Action == volume.ActPut && s.Mode.Perm() != was.Mode.Perm():
		l.Why = whyMode(was.Mode, s.Mode)
	default:
		return j.kept(t, s, l, was, is)
	}
	l.Hint = j.recoverable()
	j.lose(l)
	return nil
}

// kept judges a path that has its type and mode.
func (j *judge) kept(t *Tree, s volume.Step, l Loss, was, is volume.Info) error {
	switch {
	case was.Kind == volume.Dir && s.Action == volume.ActMkdir:
		return nil
	case was.Kind == volume.Symlink && s.Action == volume.ActLink:
		a, err := t.Base.Readlink(s.Path)
		if err != nil {
			return err
		}
		b, err := t.Result.Readlink(s.Path)
		if err != nil || a == b {
			return err
		}
		l.Why = whyLink
	case was.Kind == volume.File && s.Action == volume.ActPut:
		return j.file(t, s.Path, was, is)
	case was.Kind == volume.Special && s.Action == volume.ActPut:
		l.Why = whySpecial
	default:
		l.Why = whyStep
	}
	l.Hint = j.recoverable()
	j.lose(l)
	return nil
}

// file judges the content of a file that is there before and after.
func (j *judge) file(t *Tree, path string, was, is volume.Info) error {
	object := guestPath(t.Path, path)
	changed := Changed{Object: object, Verb: capabilities.Overwrite}
	old, err := t.Base.Open(path)
	if errors.Is(err, capabilities.EACCES) || errors.Is(err, capabilities.EPERM) {
		j.report.Changed = append(j.report.Changed, changed)
		j.lose(Loss{Object: changed.Object, Why: whyHidden, Hint: j.recoverable()})
		return nil
	}
	if err != nil {
		return err
	}
	defer old.Close()
	now, err := t.Result.Open(path)
	if err != nil {
		return err
	}
	defer now.Close()
	p := j.pair(object, old, now, was, is)
	v := p.judge()
	switch {
	case errors.Is(p.m.err, errComplex):
		v.verb, v.why, v.pointer, v.covered = capabilities.Overwrite, whyComplex, "", ""
	case p.m.err != nil:
		return p.m.err
	}
	changed.Format, changed.Verb, changed.Relaxed = v.format, v.verb, v.relaxed
	if v.why != "" {
		if err := j.relax(&changed, object, &v, old, was.Size); err != nil {
			return err
		}
	}
	j.report.Changed = append(j.report.Changed, changed)
	return nil
}

// pair returns the two contents of a file, to be compared.
func (j *judge) pair(object string, old, now io.ReaderAt, was, is volume.Info) *pair {
	m := newMeter(j.ctx, was.Size+is.Size)
	return &pair{
		m:          m,
		old:        &source{r: old, size: was.Size, m: m, short: volume.ErrConflict},
		new:        &source{r: now, size: is.Size, m: m, short: io.ErrUnexpectedEOF},
		script:     was.Mode.Perm()&0o111 != 0,
		appendOnly: matches(j.rules.AppendOnly, object),
		exceptions: exceptions(object, j.rules.Volatile, j.rules.Transitions),
		requested:  exceptions(object, j.rules.Requested.Volatile, j.rules.Requested.Transitions),
	}
}

// relax looks for what allows a loss, and else reports it.
func (j *judge) relax(c *Changed, object string, v *verdict, old io.ReaderAt, size int64) error {
	if matches(j.rules.VolatileFiles, object) {
		c.Relaxed = []string{"volatile file"}
		return nil
	}
	h, err := j.archive(j.rules.History, object, old, size)
	if err != nil {
		return err
	}
	if h != nil {
		c.Relaxed = []string{h.String()}
		return nil
	}
	l := Loss{Object: c.Object, Why: v.why}
	if v.pointer != "" {
		l.Object += "#" + v.pointer
	}
	if h, err = j.archive(j.rules.Requested.History, object, old, size); err != nil {
		return err
	}
	switch {
	case v.covered != "":
		l.Hint = asked(v.covered)
	case h != nil:
		l.Hint = asked(h.String())
	case j.rules.Requested.Recoverable > 0:
		l.Hint = j.recoverable()
	case v.binary:
		l.Hint = hintBinary
	}
	j.lose(l)
	return nil
}

// recoverable returns the hint for a loss that only undo could allow.
func (j *judge) recoverable() string {
	if d := j.rules.Requested.Recoverable; d > 0 {
		return asked(recoverable(d))
	}
	return ""
}

// guestPath returns where a guest sees a path of a volume.
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
