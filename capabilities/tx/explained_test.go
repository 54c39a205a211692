package tx

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// explained reports whether there is an order of the calls that were committed in which
// each saw what it saw, none before one that had ended when it began, and whether each
// of the others saw a moment of that: what had ended when it began, and what of the
// rest was done then. Two commits may become visible the other way round than the order
// has them, where one had looked at what the other changed: commits are SERIALIZABLE
// transactions in PostgreSQL, and snapshots are not among them (Fekete, O'Neil, O'Neil, "A
// Read-Only Transaction Anomaly Under Snapshot Isolation", 2004).
func explained(calls []happened, begin, end model) bool {
	var writers, readers []happened
	for _, c := range calls {
		if c.version == 0 {
			readers = append(readers, c)
		} else {
			writers = append(writers, c)
		}
	}
	e := &explanation{begin: begin, end: end, writers: writers, readers: readers, tried: map[string]bool{}, used: make([]bool, len(writers))}
	return e.search(begin)
}

type explanation struct {
	begin, end       model
	writers, readers []happened
	tried            map[string]bool
	used             []bool
	order            []written
}

// written is what a call changed, in an order.
type written struct {
	happened
	before, after model
}

func (e *explanation) search(state model) bool {
	if len(e.order) == len(e.writers) {
		return maps.Equal(state, e.end) && !slices.ContainsFunc(e.readers, func(r happened) bool { return !e.sawMoment(r) })
	}
	var ids []string
	for _, w := range e.order {
		ids = append(ids, w.id)
	}
	if len(e.readers) == 0 { // else another order of the same may do
		slices.Sort(ids)
	}
	place := fmt.Sprint(ids, state)
	if e.tried[place] {
		return false
	}
	e.tried[place] = true
	first := forever // end of those that are still to come
	for i, c := range e.writers {
		if !e.used[i] {
			first = min(first, c.ended)
		}
	}
	for i, c := range e.writers {
		if e.used[i] || c.began > first {
			continue
		}
		next, ok := c.fits(state)
		if !ok {
			continue
		}
		e.used[i], e.order = true, append(e.order, written{c, state, next})
		if e.search(next) {
			return true
		}
		e.used[i], e.order = false, e.order[:len(e.order)-1]
	}
	return false
}

// sawMoment reports whether a call that changed nothing saw a moment: all that had
// ended when it began, and of those that had neither ended then nor began after it some,
// each with those that had ended when it began.
func (e *explanation) sawMoment(r happened) bool {
	var open []int
	in := make([]bool, len(e.order))
	for i, w := range e.order {
		switch {
		case w.ended < r.began:
			in[i] = true
		case w.began < r.ended:
			open = append(open, i)
		}
	}
	for choice := range 1 << len(open) {
		for k, i := range open {
			in[i] = choice>>k&1 == 1
		}
		if !e.closed(in) {
			continue
		}
		if _, ok := r.fits(e.moment(in)); ok {
			return true
		}
	}
	return false
}

// closed reports whether with each call those are in that had ended when it began.
func (e *explanation) closed(in []bool) bool {
	for i, w := range e.order {
		for k, before := range e.order {
			if in[i] && !in[k] && before.ended < w.began {
				return false
			}
		}
	}
	return true
}

// moment returns what those that are in have left.
func (e *explanation) moment(in []bool) model {
	m := maps.Clone(e.begin)
	for i, w := range e.order {
		if !in[i] {
			continue
		}
		for at := range w.before {
			if _, stays := w.after[at]; !stays {
				delete(m, at)
			}
		}
		for at, data := range w.after {
			if was, there := w.before[at]; !there || was != data {
				m[at] = data
			}
		}
	}
	return m
}

// TestExplained: histories that a store of serialisable commits makes are explained, and
// others are not.
func TestExplained(t *testing.T) {
	read, write := func(at string) step { return step{What: "read", At: at} }, func(at string) step { return step{What: "write", At: at} }
	call := func(id string, began, ended int, version uint64, seen []string, steps ...step) happened {
		return happened{id: id, steps: steps, seen: seen, began: began, ended: ended, version: store.Version(version)}
	}
	const none = "false"
	// p looked at b before q changed it, and is after it in time.
	p, q := call("p", 1, 9, 2, []string{none}, read("kv b"), write("kv a")), call("q", 2, 4, 1, nil, write("kv b"))
	end := model{"kv a": "p.1", "kv b": "q.0"}
	for name, c := range map[string]struct {
		calls []happened
		end   model
		want  bool
	}{
		"one after the other":                        {[]happened{call("p", 1, 2, 1, nil, write("kv a")), call("r", 3, 4, 0, []string{"p.0true"}, read("kv a"))}, model{"kv a": "p.0"}, true},
		"a read does not see what had ended":         {[]happened{call("p", 1, 2, 1, nil, write("kv a")), call("r", 3, 4, 0, []string{none}, read("kv a"))}, model{"kv a": "p.0"}, false},
		"a read sees what had not begun":             {[]happened{call("r", 1, 2, 0, []string{"p.0true"}, read("kv a")), call("p", 3, 4, 1, nil, write("kv a"))}, model{"kv a": "p.0"}, false},
		"a read between":                             {[]happened{p, q, call("r", 5, 10, 0, []string{"q.0true", none}, read("kv b"), read("kv a"))}, end, true},
		"a read of half a commit":                    {[]happened{call("p", 1, 4, 1, nil, write("kv a"), write("kv b")), call("r", 2, 3, 0, []string{"p.0true", none}, read("kv a"), read("kv b"))}, model{"kv a": "p.0", "kv b": "p.1"}, false},
		"what looked at another is there without it": {[]happened{call("q", 1, 2, 1, nil, write("kv b")), call("p", 3, 6, 2, []string{"q.0true"}, read("kv b"), write("kv a")), call("r", 1, 9, 0, []string{"p.1true", none}, read("kv a"), read("kv b"))}, model{"kv a": "p.1", "kv b": "q.0"}, false},
		"a lost update":                              {[]happened{call("p", 1, 4, 1, []string{none}, read("kv a"), write("kv a")), call("q", 2, 5, 2, []string{none}, read("kv a"), write("kv a"))}, model{"kv a": "q.1"}, false},
		"another end":                                {[]happened{p, q}, model{"kv a": "p.1"}, false},
	} {
		if got := explained(c.calls, model{}, c.end); got != c.want {
			t.Errorf("%s: explained: %t, want %t", name, got, c.want)
		}
	}
}
