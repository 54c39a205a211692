// Package measure runs ways of doing the same work side by side.
package measure

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"time"
)

// Subject is one way to answer a call.
type Subject struct {
	Name string
	// Call makes the n-th call of a caller and checks its answer. Callers and calls are
	// counted from 0.
	Call func(ctx context.Context, caller, n int) error
	// CPU returns the processor time that answering took so far, of whatever processes
	// do it.
	CPU func() (time.Duration, error)
	// Took returns how long the caller's last call took, where Call does more than
	// what is timed. nil: as long as Call.
	Took func(caller int) time.Duration
}

// Options of [Run].
type Options struct {
	Rounds  int           // at least 1
	Each    time.Duration // how long a subject runs in a round, at least
	Warm    time.Duration // how long it runs before the first round
	Callers int           // at once; at least 1
	Least   int           // calls of each caller in a round, at least 1
}

// Round is what one subject cost in one round.
type Round struct {
	P10, P50, P90, P99 time.Duration
	Calls              int
	Wall, CPU          time.Duration // of all calls
	Here               time.Duration // processor time of this process meanwhile
}

// PerCall returns the processor time of one call.
func (r Round) PerCall() time.Duration { return r.CPU / time.Duration(max(r.Calls, 1)) }

// Series is what a subject cost, round by round.
type Series struct {
	Name   string
	Rounds []Round
	Err    error // it did not answer as it should; the rounds are those before
}

// Run lets the subjects take turns, in an order that moves on by one in each
// round, so that a busy moment of the machine does not always fall on the same
// one. A subject that fails runs no further. The error is that of ctx.
func Run(ctx context.Context, subjects []Subject, o Options) ([]Series, error) {
	all := make([]Series, len(subjects))
	states := make([]*state, len(subjects))
	for i, s := range subjects {
		all[i].Name = s.Name
		states[i] = &state{subject: s, counts: make([]int, o.Callers)}
		if _, err := states[i].round(ctx, o.Warm, 1); err != nil {
			all[i].Err = err
		}
	}
	for round := range o.Rounds {
		for i := range subjects {
			at := (i + round) % len(subjects)
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			s := &all[at]
			if s.Err != nil {
				continue
			}
			r, err := states[at].round(ctx, o.Each, max(o.Least, 1))
			if err != nil {
				s.Err = err
				continue
			}
			s.Rounds = append(s.Rounds, r)
		}
	}
	return all, nil
}

// state is a subject between its rounds.
type state struct {
	subject Subject
	counts  []int // calls made by each caller
}

// round runs the subject for as long as each, and until each caller has made as
// many calls as least says.
func (s *state) round(ctx context.Context, each time.Duration, least int) (Round, error) {
	goruntime.GC() // what others left is not this one's to clear
	before, err := s.subject.CPU()
	if err != nil {
		return Round{}, err
	}
	here, err := Self()
	if err != nil {
		return Round{}, err
	}
	began := time.Now()
	until := began.Add(each)
	took := make([][]time.Duration, len(s.counts))
	errs := make([]error, len(s.counts))
	var work sync.WaitGroup
	for caller := range s.counts {
		work.Go(func() { took[caller], errs[caller] = s.calls(ctx, caller, until, least) })
	}
	work.Wait()
	wall := time.Since(began)
	end, err := Self()
	after, err2 := s.subject.CPU()
	if err := errors.Join(append(errs, err, err2)...); err != nil {
		return Round{}, fmt.Errorf("%s: %w", s.subject.Name, err)
	}
	r := Quantiles(slices.Concat(took...))
	r.Wall, r.CPU, r.Here = wall, after-before, end-here
	return r, nil
}

// calls makes one caller's calls.
func (s *state) calls(ctx context.Context, caller int, until time.Time, least int) (took []time.Duration, err error) {
	for len(took) < least || time.Now().Before(until) {
		began := time.Now()
		err := s.subject.Call(ctx, caller, s.counts[caller])
		d := time.Since(began)
		if err != nil {
			return took, err
		}
		s.counts[caller]++
		if s.subject.Took != nil {
			d = s.subject.Took(caller)
		}
		took = append(took, d)
	}
	return took, nil
}
