package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/runtime"
)

// relaxable are the hints whose claims a relaxation can make kept.
var relaxable = []capabilities.Hint{capabilities.DestructiveHint, capabilities.IdempotentHint}

// relax makes a call that broke a claim again with the relaxations that its
// package requests, and finds out which of them it takes.
func (j *judge) relax(ctx context.Context, t *trial) error {
	lines := j.source.Manifest.Relaxations.Lines()
	if len(lines) == 0 || len(brokenOf(t.strict)) == 0 {
		return nil
	}
	full, err := j.worlds.try(ctx, t.call, terms{relaxed: lines})
	if err != nil {
		return err
	}
	t.made, t.problem = full, problem(full)
	for _, h := range brokenOf(t.strict) {
		if slices.Contains(brokenOf(full), h) {
			continue
		}
		keeps := func(lines []string) (bool, error) {
			r, err := j.worlds.try(ctx, t.call, terms{relaxed: lines})
			return err == nil && r.Outcome == full.Outcome && !slices.Contains(brokenOf(r), h), err
		}
		needed, err := fewest(likely(lines, violationOf(t.strict, h).Object), keeps)
		if err != nil {
			return err
		}
		t.needs[h] = strings.Join(needed, "\n")
	}
	return nil
}

// likely returns the lines with those first that name what was lost, or a folder
// that it is in.
func likely(lines []string, object string) []string {
	names := func(line string) int {
		for word := range strings.FieldsSeq(line) {
			if path, _, _ := strings.Cut(word, "#"); strings.HasPrefix(path, "/") && strings.HasPrefix(object, path) {
				return 0
			}
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(lines), func(a, b string) int { return names(a) - names(b) })
}

// brokenOf returns the relaxable hints that a call broke.
func brokenOf(r *runtime.Result) []capabilities.Hint {
	var hs []capabilities.Hint
	for _, h := range relaxable {
		if slices.ContainsFunc(r.All, func(v capabilities.Violation) bool { return v.Hint == h }) {
			hs = append(hs, h)
		}
	}
	return hs
}

// fewest returns lines that do: the first one that does alone, else all of them
// without those that it also does without, the broadest, which are last, tried
// first.
func fewest(lines []string, does func([]string) (bool, error)) ([]string, error) {
	for _, one := range lines {
		if ok, err := does([]string{one}); ok || err != nil {
			return []string{one}, err
		}
	}
	needed := slices.Clone(lines)
	for _, one := range slices.Backward(lines) {
		without := slices.DeleteFunc(slices.Clone(needed), func(l string) bool { return l == one })
		ok, err := does(without)
		if err != nil {
			return nil, err
		}
		if ok {
			needed = without
		}
	}
	return needed, nil
}
