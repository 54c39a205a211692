package trust

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// wider lists, a line each, where a package claims less or asks for more than
// what was trusted. A request that is not there word for word counts as more. It
// is empty where nothing was trusted.
func wider(was, now Record) []string {
	if was.Format == "" {
		return nil
	}
	var list []string
	for p := range pairs(was.Tools, now.Tools) {
		switch {
		case p.was == nil:
			list = append(list, "tool "+p.name+": new")
		case p.now != nil:
			for _, h := range looser(p.was.Annotations.Effective(), p.now.Annotations.Effective()) {
				list = append(list, "tool "+p.name+": "+h)
			}
			list = append(list, added("tool "+p.name+" requires of the client: ", p.was.ClientCapabilities, p.now.ClientCapabilities)...)
		}
	}
	list = append(list, added("requests ", requestLines(was.Requests), requestLines(now.Requests))...)
	list = append(list, added("requests relaxation ", relaxationLines(was.Relaxations), relaxationLines(now.Relaxations))...)
	list = append(list, added("grants ", grantLines(was.Granted), grantLines(now.Granted))...)
	list = append(list, raised(was.Limits, now.Limits)...)
	for _, name := range sortedKeys(was.Labels) {
		if v, ok := now.Labels[name]; !ok || v != was.Labels[name] {
			list = append(list, "label "+line(name+"="+was.Labels[name])+": gone")
		}
	}
	return list
}

// looser lists the hints that promise less than before.
func looser(was, now capabilities.Effective) []string {
	var list []string
	hint := func(h capabilities.Hint, was, now, safe bool) {
		if was == safe && now != safe {
			list = append(list, fmt.Sprintf("%s %t -> %t", h, was, now))
		}
	}
	hint(capabilities.ReadOnlyHint, was.ReadOnly, now.ReadOnly, true)
	hint(capabilities.DestructiveHint, was.Destructive, now.Destructive, false)
	hint(capabilities.IdempotentHint, was.Idempotent, now.Idempotent, true)
	hint(capabilities.OpenWorldHint, was.OpenWorld, now.OpenWorld, false)
	return list
}

// added returns the lines that were not there before.
func added(prefix string, was, now []string) []string {
	var list []string
	for _, l := range now {
		if !slices.Contains(was, l) {
			list = append(list, prefix+l)
		}
	}
	return list
}

// raised lists the limits that are higher than before.
func raised(was, now tool.Limits) []string {
	before, after := limitLines(was), limitLines(now)
	unlimited := func(fuel uint64) uint64 {
		if fuel == 0 {
			return math.MaxUint64
		}
		return fuel
	}
	var list []string
	for i, is := range []bool{ // in the order of limitLines
		now.Memory > was.Memory, now.Timeout > was.Timeout, now.Output > was.Output,
		unlimited(now.Fuel) > unlimited(was.Fuel), now.Writes > was.Writes, now.Files > was.Files,
	} {
		if is {
			_, value, _ := strings.Cut(after[i], " ")
			list = append(list, "limit "+before[i]+" -> "+value)
		}
	}
	return list
}
