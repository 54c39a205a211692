package runtime

import (
	"context"
	crand "crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/additive"
	"github.com/sandboxd/sandboxd/capabilities/tx"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Replay is what running a call a second time, on what the first run would leave,
// came to. The values are label values of the metric sandboxd_replays_total.
type Replay string

// The verdicts of a replay.
const (
	NotReplayed   Replay = ""
	Idempotent    Replay = "idempotent"     // nothing further
	Further       Replay = "further"        // the second run changed something more
	TimeDependent Replay = "time-dependent" // only a run 25 hours later did
	Inconclusive  Replay = "inconclusive"   // the second run ended in a limit
)

const (
	// thirdLook is how much later the third run is.
	thirdLook = 25 * time.Hour
	// maxAhead bounds by how much the second run's clock is moved.
	maxAhead = 10 * time.Minute
)

// errInconclusive: the second run of a call ended in a limit, which proves
// nothing.
var errInconclusive = errors.New("second run ended in a limit")

// replayed is what a replay found.
type replayed struct {
	verdict Replay
	further *capabilities.Effect // the first one, where there is one
	broken  []capabilities.Violation
}

// replay runs the call a second time on a shadow of what it would leave and, when
// look says so, a third time 25 hours later. What the network answered is not
// asked again; there is none yet.
func (c *call) replay(ctx context.Context, look bool) (replayed, error) {
	ahead := time.Second + mrand.N(maxAhead)
	r, err := c.again(ctx, ahead, 0)
	if err != nil || r.verdict != Idempotent || !look {
		return r, err
	}
	later, err := c.again(ctx, ahead, thirdLook)
	if err == nil && later.verdict == Further {
		later.verdict = TimeDependent
	}
	return later, err
}

// again is one more run of the call, by another seed, clock and call id. When it is
// made is nothing to start-up code, whose clock never is that of the day.
func (c *call) again(ctx context.Context, ahead, later time.Duration) (replayed, error) {
	request := newDelivery(c.tool.Definition.Name, crand.Text(), c.arguments)
	spec := *c.callSpec
	spec.ledger, spec.report = capabilities.NewLedger(c.execution.ledger.Grant(), capabilities.Notify{}), c.report.apart()
	defer func() { c.report.fault = errors.Join(c.report.fault, spec.report.take()) }()
	s := spec.on(c.world, c.shadow(c.world.volumes, spec.ledger, ahead+later))
	defer s.close()
	s.startUp.replay, s.startUp.ahead = true, ahead
	switch r := s.guest(ctx, request); r.Outcome {
	case OK:
		return s.judgeFurther(ctx)
	case ToolError:
		if s.commitsErrors(r) {
			return s.judgeFurther(ctx)
		}
		return replayed{verdict: Idempotent}, nil
	case Violation:
		return replayed{verdict: Further, broken: spec.ledger.Violations()}, nil
	case Limit:
		return replayed{verdict: Inconclusive}, nil
	case Timeout, Conflict, HostError, Refused:
		return replayed{}, r.Err
	}
	return replayed{}, errAnswer
}

// judgeFurther says whether a second run would change anything.
func (c *call) judgeFurther(ctx context.Context) (replayed, error) {
	r := replayed{verdict: Idempotent}
	_, err := c.tx.Prepare(ctx, func(ctx context.Context, p *tx.Prepared, v tx.View) error {
		for _, e := range p.Effects {
			same, err := c.noFurther(ctx, e, v)
			if err != nil {
				return err
			}
			if !same {
				r = replayed{verdict: Further, further: &e}
				return nil
			}
		}
		return nil
	})
	if asLimit(err) != nil {
		return replayed{verdict: Inconclusive}, nil
	}
	return r, err
}

// noFurther reports whether an effect of a second run is none: set times do not
// count, nor what is approved to be volatile.
func (c *call) noFurther(ctx context.Context, e capabilities.Effect, v tx.View) (bool, error) {
	switch {
	case e.Verb == capabilities.Read:
		return true, nil
	case e.Kind != capabilities.KindFile: // its detail may be the guest's own text
		return false, nil
	case e.Detail == volume.DetailTimes:
		return true, nil
	case e.Verb == capabilities.Create, e.Verb == capabilities.Delete:
		return false, nil
	}
	name, in, ok := c.place(e.Object)
	if !ok {
		return false, nil
	}
	return sameFile(ctx, c.pkg.rules, e.Object, v.Base(name), v.Result(name), in)
}

// sameFile reports whether a file has the same content in two trees, but for what
// is approved to be volatile.
func sameFile(ctx context.Context, rules additive.Rules, object string, was, is volume.Base, path string) (bool, error) {
	before, oldSize, err := openFile(was, path)
	if err != nil {
		return false, err
	}
	defer before.Close()
	after, newSize, err := openFile(is, path)
	if err != nil {
		return false, err
	}
	defer after.Close()
	return rules.Same(ctx, object, before, after, oldSize, newSize)
}

func openFile(b volume.Base, path string) (volume.Content, int64, error) {
	info, _, err := b.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	c, err := b.Open(path)
	return c, info.Size, err
}
