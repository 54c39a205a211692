package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// MaxIdempotencyKey is the most bytes that an idempotency key has.
const MaxIdempotencyKey = 255

// ErrIdempotencyKey: a call's idempotency key is none, or was used by another
// call. See [KeyError].
var ErrIdempotencyKey = errors.New("idempotency key")

// KeyError says why a call cannot be made under its idempotency key. It matches
// [ErrIdempotencyKey].
type KeyError struct{ Problem, Mend string }

// Error names both.
func (e *KeyError) Error() string {
	return fmt.Sprintf("%v: %s; %s", ErrIdempotencyKey, e.Problem, e.Mend)
}

// Is reports whether target is [ErrIdempotencyKey].
func (e *KeyError) Is(target error) bool { return target == ErrIdempotencyKey }

// remembered is the place in the store of what the first call under an
// idempotency key came to.
type remembered struct {
	store  store.Store
	key    store.Key
	digest string        // of the arguments
	keep   time.Duration // for how long
	callID string
}

// memory is what is kept there. Only what was committed is: a violation, a
// conflict or a time-out before that may be tried again under the same key.
type memory struct {
	CallID string `json:"callId"`
	Digest string `json:"digest"`
	Output Output `json:"output"`

	Effects []capabilities.Effect `json:"effects"`
}

// remembering returns where the call's result is kept, nil where it has no key:
// it changes nothing, or nobody gave one.
func (s *callSpec) remembering(r Request) (*remembered, error) {
	e := s.pkg.engine
	key := r.IdempotencyKey
	if name := s.tool.Definition.IdempotencyKeyArgument; key == "" && name != "" {
		var err error
		if key, err = s.keyArgument(name); err != nil {
			return nil, err
		}
	}
	switch {
	case key == "" || s.dryRun || s.tool.Effective.ReadOnly:
		return nil, nil
	case len(key) > MaxIdempotencyKey:
		return nil, &KeyError{fmt.Sprintf("is longer than %d bytes", MaxIdempotencyKey), "take a shorter one"}
	case e.store == nil:
		return nil, &KeyError{"cannot be kept: this host has no store", "call without one"}
	}
	digest := sha256.Sum256(s.arguments)
	space := store.Space{Principal: s.report.info.Principal, Package: s.pkg.name, Area: store.AreaIdempotency}
	return &remembered{
		store: e.store, key: store.Key{Space: space, Name: s.tool.Definition.Name + "\x00" + key},
		digest: hex.EncodeToString(digest[:]), keep: e.retain.Idempotency, callID: s.report.info.ID,
	}, nil
}

// keyArgument returns the key that is the argument of that name; empty where it is not
// there.
func (s *callSpec) keyArgument(name string) (key string, err error) {
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal(s.arguments, &arguments); err != nil {
		return "", err
	}
	if text, ok := arguments[name]; ok {
		if err := json.Unmarshal(text, &key); err != nil {
			return "", &KeyError{"in the argument " + name + " is no text", "write a text"}
		}
	}
	return key, nil
}

// find returns the result of the first call under the key, nil where there is
// none.
func (m *remembered) find(ctx context.Context) (*Result, error) {
	now, err := m.store.Snapshot(ctx)
	if err != nil {
		return nil, &HostFault{err}
	}
	entries, err := now.Get(ctx, m.key)
	if err != nil {
		return nil, &HostFault{err}
	}
	if entries[0].Version == 0 {
		return nil, nil
	}
	var was memory
	if err := json.Unmarshal(entries[0].Value, &was); err != nil {
		return nil, &HostFault{err}
	}
	if was.Digest != m.digest {
		return nil, &KeyError{"was used before with other arguments", "give a call with other arguments a key of its own"}
	}
	r := ended(OK, nil)
	r.CallID, r.Effects, r.Output, r.Committed, r.Remembered = was.CallID, was.Effects, was.Output, true, true
	if was.Output.IsError {
		r.Outcome = ToolError
	}
	return r, nil
}

// told returns what an observer is told of the result of a call of that id: a
// remembered one is a call of its own, and did nothing.
func (r *Result) told(id string) *Result {
	if !r.Remembered {
		return r
	}
	own := *r
	own.CallID, own.Effects = id, []capabilities.Effect{}
	return &own
}

// keepResult returns what makes a commit remember its result, unless another did
// meanwhile.
func (m *remembered) keepResult(r *Result, at time.Time) (store.Guard, store.Write, error) {
	value, err := json.Marshal(memory{m.callID, m.digest, r.Output, r.Effects})
	if err != nil {
		return store.Guard{}, store.Write{}, err
	}
	return store.Guard{Key: m.key}, store.Write{Key: m.key, Value: value, Expires: at.Add(m.keep)}, nil
}

// flights lets one call at a time through under each idempotency key: the next
// one then finds what it came to. The zero value is ready. Calls in other
// processes meet in the store.
type flights struct {
	mu   sync.Mutex
	busy map[store.Key]chan struct{}
}

// enter waits for the call's turn under its key. It returns the result of the
// first call under it where there is one, else leave is to be called at the end.
func (f *flights) enter(ctx context.Context, s *callSpec, r Request) (first *Result, leave func(), err error) {
	m, err := s.remembering(r)
	if err != nil {
		return nil, nil, err
	}
	if m == nil {
		return nil, func() {}, nil
	}
	if leave, err = f.turn(ctx, m.key); err != nil {
		return nil, nil, err
	}
	if first, err = m.find(ctx); first != nil || err != nil {
		leave()
		return first, nil, err
	}
	s.once = m
	return nil, leave, nil
}

func (f *flights) turn(ctx context.Context, k store.Key) (leave func(), err error) {
	for {
		f.mu.Lock()
		busy, flying := f.busy[k]
		if !flying {
			done := make(chan struct{})
			if f.busy == nil {
				f.busy = map[store.Key]chan struct{}{}
			}
			f.busy[k] = done
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.busy, k)
				f.mu.Unlock()
				close(done)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// unremembered returns the result of a call that its idempotency key kept from
// running.
func unremembered(ctx context.Context, err error) *Result {
	switch {
	case ctx.Err() != nil:
		return ended(Timeout, context.Cause(ctx))
	case errors.Is(err, ErrIdempotencyKey):
		return ended(Refused, err)
	}
	return ended(HostError, err)
}

func firstOr(ctx context.Context, first *Result, err error) *Result {
	if err != nil {
		return unremembered(ctx, err)
	}
	return first
}
