package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// suggest finds annotations for the tools that claim all that was seen and nothing
// that was broken, and tries them, all at once: a tool can fail where it is held
// to more. Each round takes back what failed.
func (w *worlds) suggest(ctx context.Context, judges []*judge, tools []Tool) error {
	settled := make([]bool, len(judges))
	for round := 0; slices.Contains(settled, false); round++ {
		t := terms{claims: map[string]capabilities.Claim{}, named: fmt.Sprintf("suggested %d", round), relaxed: w.source.Manifest.Relaxations.Lines()}
		for i, j := range judges {
			t.claims[j.tool.Name] = j.suggested(&tools[i])
		}
		for i, j := range judges {
			claim := t.claims[j.tool.Name]
			if settled[i] = settled[i] || claim == j.tool.Claim; settled[i] {
				continue
			}
			var refuted map[capabilities.Hint]string
			if slices.ContainsFunc(tools[i].Hints, func(h Hint) bool { return h.Verdict == UnderClaimed }) {
				var err error
				if refuted, err = j.refuted(ctx, t); err != nil {
					return err
				}
			}
			if settled[i] = !tools[i].takeBack(refuted); settled[i] && len(refuted) == 0 {
				tools[i].Suggested = &claim
			}
		}
	}
	return nil
}

// takeBack turns the verdict on what was claimed anew and failed. It reports
// whether there was any.
func (t *Tool) takeBack(refuted map[capabilities.Hint]string) bool {
	found := false
	for i := range t.Hints {
		h := &t.Hints[i]
		if call := refuted[h.Hint]; call != "" && h.Verdict == UnderClaimed {
			h.Verdict, h.Reason, found = Observed, fmt.Sprintf("%s, but held to that it fails (%s)", h.Reason, call), true
		}
	}
	return found
}

// suggested returns the annotations that the verdicts add up to.
func (j *judge) suggested(t *Tool) capabilities.Claim {
	c := j.tool.Claim
	for _, r := range t.Hints {
		at := hintOf(&c, r.Hint)
		switch r.Verdict {
		case UnderClaimed:
			*at = capabilities.TriOf(promise(r.Hint))
		case Broken:
			*at = capabilities.TriOf(!promise(r.Hint))
		case Observed, Proved:
			moot := j.effective.ReadOnly && slices.Contains(relaxable, r.Hint)
			if *at == capabilities.Unset && !moot {
				*at = capabilities.TriOf(r.Effective)
			}
		case NotChecked:
		}
	}
	if c.ReadOnly == capabilities.True {
		if !j.effective.ReadOnly {
			c.Destructive, c.Idempotent = capabilities.Unset, capabilities.Unset
		}
		return c
	}
	if j.effective.ReadOnly { // which it is not: its other claims were never looked at
		t.because = map[capabilities.Hint]string{}
		for _, h := range relaxable {
			if did, known := j.unclaimed(h); known {
				*hintOf(&c, h) = capabilities.TriOf((did == "") == promise(h))
				if t.because[h] = did; did == "" {
					t.because[h] = "observed " + words[h]
				}
			}
		}
	}
	return c
}

// unclaimed says what the calls, held to nothing, did against the promise of a
// hint; known, where one of them ended well.
func (j *judge) unclaimed(h capabilities.Hint) (did string, known bool) {
	for _, t := range j.trials {
		r := t.strict
		if t.free != nil {
			r = t.free
		}
		if r == nil || r.Outcome != runtime.OK {
			continue
		}
		known = true
		if did, _ := against(r, h); did != "" {
			return did + " (" + t.id + ")", true
		}
	}
	return "", known
}

// refuted makes the calls that ended well once more under other claims, and
// returns the first call that went wrong, by hint.
func (j *judge) refuted(ctx context.Context, t terms) (map[capabilities.Hint]string, error) {
	wrong := map[capabilities.Hint]string{}
	for _, x := range j.trials {
		if !x.says(capabilities.ReadOnlyHint) {
			continue
		}
		r, err := j.worlds.try(ctx, x.call, t)
		if err != nil {
			return nil, err
		}
		var hints []capabilities.Hint
		for _, v := range r.All {
			hints = append(hints, v.Hint)
		}
		if r.Outcome != runtime.OK && r.Outcome != runtime.Violation {
			hints = append(hints, capabilities.ReadOnlyHint) // it was denied what it needs
		}
		for _, h := range hints {
			if wrong[h] == "" {
				wrong[h] = x.id
			}
		}
	}
	return wrong, nil
}
