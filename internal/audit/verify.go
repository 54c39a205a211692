package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Head is the end of a writer's chain, to be kept where whoever can write to the
// store cannot.
type Head struct {
	Writer string       `json:"writer"`
	First  uint64       `json:"first"` // the oldest record that was kept
	N      uint64       `json:"n"`     // the last record
	Hash   store.Digest `json:"hash"`  // of the last record
}

// Fault is what is wrong with a chain.
type Fault struct {
	Writer  string `json:"writer"`
	Record  uint64 `json:"record"`
	Problem string `json:"problem"`
}

// Verdict is what [Verify] found.
type Verdict struct {
	Records int     `json:"records"` // that were checked
	Chains  int     `json:"chains"`
	Faults  []Fault `json:"faults"` // the first ones, at most a hundred; empty: none
	Heads   []Head  `json:"heads"`
}

// VerifyOptions are what [Verify] holds a journal against besides itself.
type VerifyOptions struct {
	Noted []Head // heads of an earlier verdict; default: none
	// Patience is how long the end of a chain may take to be readable, where
	// transactions of others hold it up; default: not at all.
	Patience time.Duration
}

// ErrHeads is matched by the errors of [ParseHeads].
var ErrHeads = errors.New("no heads of an audit log")

// ParseHeads returns the heads of a verdict that was written as JSON.
func ParseHeads(b []byte) ([]Head, error) {
	var v struct{ Heads []Head }
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHeads, err)
	}
	if v.Heads == nil {
		return nil, ErrHeads
	}
	return v.Heads, nil
}

const (
	maxFaults  = 100
	verifyPoll = 100 * time.Millisecond
)

// Verify walks the chain of each writer, recomputes each record's hash from the
// one before, and compares the end with the chain's head: so it finds records
// that were changed, removed, put elsewhere or cut off by somebody who did not
// rewrite all that follows and the head. Records may be written and pruned
// meanwhile.
func Verify(ctx context.Context, j store.Journal, o VerifyOptions) (*Verdict, error) {
	v := &verifier{journal: j, chains: map[string]*chain{}, noted: map[string][]Head{}, verdict: &Verdict{Faults: []Fault{}, Heads: []Head{}}}
	for _, h := range o.Noted {
		v.noted[h.Writer] = append(v.noted[h.Writer], h)
	}
	heads, err := v.heads(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		v.chains[h.Writer] = &chain{head: h, begun: true, n: h.First - 1, hash: h.Prev}
		v.order = append(v.order, h.Writer)
	}
	if err := v.walk(ctx, o.Patience); err != nil {
		return nil, err
	}
	later, err := v.heads(ctx)
	if err != nil {
		return nil, err
	}
	v.settle(later)
	return v.verdict, nil
}

// chain is how far the chain of a writer was walked.
type chain struct {
	head  store.Head // when the walk began
	begun bool       // there was a head then
	n     uint64
	hash  store.Digest
	gaps  []gap
}

// gap is records that are not there between those that are.
type gap struct {
	from, to uint64
	prev     store.Digest // that the record after it names
}

type verifier struct {
	journal store.Journal
	chains  map[string]*chain
	order   []string
	noted   map[string][]Head
	verdict *Verdict
	after   store.Cursor
}

func (v *verifier) heads(ctx context.Context) ([]store.Head, error) {
	heads, err := v.journal.Heads(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return heads, nil
}

func (v *verifier) fault(writer string, n uint64, format string, args ...any) {
	if len(v.verdict.Faults) < maxFaults {
		v.verdict.Faults = append(v.verdict.Faults, Fault{writer, n, fmt.Sprintf(format, args...)})
	}
}

// walk reads all records, and waits for those that have to come.
func (v *verifier) walk(ctx context.Context, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; {
		for {
			list, err := v.journal.Records(ctx, v.after, page)
			if err != nil {
				return fmt.Errorf("audit log: %w", err)
			}
			if len(list) == 0 {
				break
			}
			for _, l := range list {
				v.after = l.Cursor
				v.record(l)
			}
		}
		if !v.short() || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(verifyPoll):
		}
	}
}

// short reports whether a chain does not reach to its head.
func (v *verifier) short() bool {
	for _, c := range v.chains {
		if c.n < c.head.N {
			return true
		}
	}
	return false
}

// record holds the next record against its chain.
func (v *verifier) record(l store.Logged) {
	v.verdict.Records++
	c := v.chains[l.Writer]
	if c == nil {
		c = &chain{}
		v.chains[l.Writer] = c
		v.order = append(v.order, l.Writer)
	}
	if l.N <= c.n {
		v.fault(l.Writer, l.N, "comes after record %d: it is doubled, or was put elsewhere", c.n)
		return
	}
	switch {
	case l.N > c.n+1:
		c.gaps = append(c.gaps, gap{c.n + 1, l.N - 1, l.Prev})
	case l.Prev != c.hash:
		v.fault(l.Writer, l.N, "does not follow the record before it: it names the hash %s, and that one has %s", l.Prev, c.hash)
	}
	if want := store.ChainHash(l.Prev, l.Writer, l.N, l.Record); l.Hash != want {
		v.fault(l.Writer, l.N, "was changed: it hashes to %s, and was written with %s", want, l.Hash)
	}
	c.n, c.hash = l.N, l.Hash
	if l.N == c.head.N && l.Hash != c.head.Hash {
		v.fault(l.Writer, l.N, "is not the one that the head of the chain names: its hash is %s, that of the head %s", l.Hash, c.head.Hash)
	}
	for _, h := range v.noted[l.Writer] {
		if h.N == l.N && h.Hash != l.Hash {
			v.fault(l.Writer, l.N, "is not the one that was noted: its hash is %s, the noted one %s", l.Hash, h.Hash)
		}
	}
}

// settle judges what only the heads after the walk can tell: what is missing may
// have been pruned meanwhile, and a chain that had no head may have begun.
func (v *verifier) settle(later []store.Head) {
	now := map[string]store.Head{}
	for _, h := range later {
		now[h.Writer] = h
	}
	for _, writer := range v.order {
		c := v.chains[writer]
		h, there := now[writer]
		if !there {
			// A store may forget a chain once all of its records were pruned.
			if c.n >= max(c.head.First, 1) || c.head.N >= c.head.First && c.begun {
				v.fault(writer, c.n, "belongs to a chain without a head: its end cannot be told")
			}
			continue
		}
		v.missing(writer, c, h)
		v.verdict.Chains++
		v.verdict.Heads = append(v.verdict.Heads, Head{Writer: writer, First: h.First, N: c.n, Hash: c.hash})
	}
	v.compareNoted(now)
	slices.SortStableFunc(v.verdict.Faults, func(a, b Fault) int {
		return slices.Index(v.order, a.Writer) - slices.Index(v.order, b.Writer)
	})
}

// missing tells of the records of a chain that should be there and are not.
func (v *verifier) missing(writer string, c *chain, now store.Head) {
	if now.N+1 < now.First || c.begun && now.N < c.head.N {
		v.fault(writer, now.N, "cannot be the last one: the chain begins at %d and had %d records", now.First, c.head.N)
	}
	for _, g := range c.gaps {
		switch {
		case g.to < now.First-1: // pruned while they were read; more was, later
		case g.to == now.First-1 && g.prev == now.Prev:
		case g.to == now.First-1:
			v.fault(writer, g.to+1, "does not follow what was pruned: it names the hash %s, and the last one had %s", g.prev, now.Prev)
		default:
			v.fault(writer, max(g.from, now.First), "is missing, and what follows up to %d", g.to)
		}
	}
	if c.n < c.head.N && now.First <= c.head.N {
		v.fault(writer, max(c.n+1, now.First), "is missing: the chain was cut off before its last record, %d", c.head.N)
	}
	if c.begun && c.n == c.head.First-1 && c.head.First == c.head.N+1 && c.head.Hash != c.head.Prev {
		v.fault(writer, c.head.N, "was the last one when all were pruned, and is not the one that the head names")
	}
	if c.n < c.head.N && now.First > c.head.N { // all pruned
		c.n, c.hash = now.First-1, now.Prev
	}
}

// compareNoted holds the chains against heads that were noted earlier, as far as
// no record that was read is theirs.
func (v *verifier) compareNoted(now map[string]store.Head) {
	for writer, heads := range v.noted {
		for _, h := range heads {
			c, known := v.chains[writer]
			first := now[writer].First
			switch {
			case h.N < h.First: // had no records left
			case !known:
				v.fault(writer, h.N, "is gone with its whole chain, whose head was noted")
			case c.n < h.N:
				v.fault(writer, c.n+1, "is missing: record %d was noted, and the chain ends before", h.N)
			case h.N == first-1 && now[writer].Prev != h.Hash:
				v.fault(writer, h.N, "was pruned, and is not the one that was noted: its hash was %s, the noted one %s", now[writer].Prev, h.Hash)
			}
		}
	}
}
