// Package additive judges whether what a call would leave loses anything that
// was there. It is pure: it reads the two sides of a volume through
// [volume.Base] and knows no clock and no other input.
//
// # What is additive
//
// Every path of the base is still there with its type and mode, and every
// changed file keeps what it held, by the rule of the format that its old
// content has:
//
//   - JSON (one document that is an object or an array): still JSON; every key
//     is kept; scalars are equal, numbers by exact decimal value and strings by
//     code points; the elements of an array are there in their order, each by
//     this same inclusion, perhaps with new ones between them.
//   - JSON Lines (each line a JSON object, blank lines aside): still JSON Lines,
//     and the records are to each other as the elements of an array. An object on
//     one line is JSON Lines too; there either rule is enough.
//   - Text (UTF-8 without NUL): still text; every line is there, whole, in order.
//     CRLF is equal to LF. A byte order mark stays as it was.
//   - JSON Lines and text with an execute bit or "#!" in front: only whole lines
//     may be added, at the end.
//   - Anything else: not additive, but for a longer file under a path that the
//     operator lists as append-only.
//
// In a file that was empty there was nothing, and it may become anything. Files
// that the base has not are free.
//
// # What it costs
//
// Files are read through windows of at most 128 KiB and never held. Besides,
// each key of the objects that are open at one place takes 16 bytes while a
// document is checked, and about 32 while one is compared whose keys are in
// another order; there may be 1.5 million of them, so a judgement never holds
// more than about 128 MiB, and less than 8 MiB for documents of small objects.
// Time is linear in what is there to read, but for documents made to be
// expensive. What is deeper than 10,000 levels, has more keys, or takes more than
// 64 times its size is too complex to judge, which is a loss.
package additive

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// maxLosses bounds what a report holds of what was lost.
const maxLosses = 100

// Tree is one volume before and after a call.
type Tree struct {
	Path   string        // where the guest sees it, absolute
	Base   volume.Base   // what was there
	Result volume.Base   // what the call would leave
	Steps  []volume.Step // what leads from one to the other
}

// Loss is one thing that was there and would not be.
type Loss struct {
	// Object is a guest path, with "#" and a JSON pointer where that is known. The
	// path is as the guest has it; the pointer is cut where it is long and has no
	// control characters, and its keys are the guest's.
	Object string
	// Why says what happened to the object. It holds nothing that the guest wrote or
	// named.
	Why string
	// Hint says what would have allowed it, and how to get that. It may be empty.
	Hint string
}

// Format is what rule a file is judged by.
type Format string

// The formats. A file that was empty has none.
const (
	NoFormat  Format = ""
	JSON      Format = "json"
	JSONLines Format = "json-lines"
	Text      Format = "text"
	Binary    Format = "binary"
)

// Changed is a file that was there and has another content.
type Changed struct {
	Object string // guest path
	Format Format // of the old content
	// Verb is Append when all that is new comes after all that was there, Insert
	// when nothing was lost otherwise, and Overwrite when something was, also
	// where a relaxation allows it.
	Verb capabilities.Verb
	// Relaxed are the approved relaxations without which this would be a loss.
	Relaxed []string
}

// Report is what was found.
type Report struct {
	// Losses are ordered by volume and path, at most 100 of them; none: what the
	// call would leave is additive.
	Losses  []Loss
	More    int       // how many losses there are besides
	Changed []Changed // ordered likewise
}

// Loss returns the first thing lost, nil when nothing is.
func (r *Report) Loss() *Loss {
	if len(r.Losses) == 0 {
		return nil
	}
	return &r.Losses[0]
}

// Verbs returns what was done to the contents of files, by guest path.
func (r *Report) Verbs() map[string]capabilities.Verb {
	verbs := make(map[string]capabilities.Verb, len(r.Changed))
	for _, c := range r.Changed {
		verbs[c.Object] = c.Verb
	}
	return verbs
}

// Judge compares what was there with what a call would leave. It returns a
// report or an error: that of the context, of reading the trees, and
// [volume.ErrConflict] when the base is seen to change meanwhile.
func Judge(ctx context.Context, trees []Tree, r Rules) (*Report, error) {
	j := &judge{ctx: ctx, rules: &r, trees: slices.Clone(trees), report: &Report{}}
	slices.SortStableFunc(j.trees, func(a, b Tree) int { return strings.Compare(a.Path, b.Path) })
	for i := range j.trees {
		if err := j.tree(&j.trees[i]); err != nil {
			return nil, err
		}
	}
	return j.report, nil
}

// judge is one judgement under way.
type judge struct {
	ctx    context.Context
	rules  *Rules
	trees  []Tree
	report *Report
	search *meter // what looking for old contents under other paths may still cost
}

func (j *judge) lose(l Loss) {
	if len(j.report.Losses) == maxLosses {
		j.report.More++
		return
	}
	j.report.Losses = append(j.report.Losses, l)
}

// lstat returns what is at a path, and whether anything is.
func lstat(b volume.Base, path string) (volume.Info, bool, error) {
	info, stamp, err := b.Lstat(path)
	switch {
	case errors.Is(err, capabilities.ENOENT) || errors.Is(err, capabilities.ENOTDIR):
		return volume.Info{}, false, nil
	case err != nil:
		return volume.Info{}, false, err
	}
	return info, stamp.Exists, nil
}
