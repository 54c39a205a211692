package outbox

import (
	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Change is what a call sends: data that can be kept as JSON and committed later,
// or never. Its guards demand that each message is still unknown.
type Change struct {
	Guards []store.Guard `json:"guards,omitempty"`
	Writes []store.Write `json:"writes,omitempty"`
}

// Empty reports whether nothing is sent.
func (c *Change) Empty() bool { return len(c.Writes) == 0 }

// Change returns what the call sends, or the error that the base had, if it had
// one.
func (b *Box) Change() (*Change, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	c, space := &Change{}, b.opts.Sender.Space()
	for _, r := range b.sent {
		writes, err := r.Writes(space)
		if err != nil {
			return nil, err
		}
		c.Guards = append(c.Guards, store.Guard{Key: Key(space, r.Message.Host, r.Message.Key)})
		c.Writes = append(c.Writes, writes...)
	}
	return c, nil
}

// Untouched reports whether the call tried to send nothing that the base was asked
// about: its change says nothing then.
func (b *Box) Untouched() bool { return b.failed == nil && len(b.sent) == 0 }

// Space returns where in the store the messages are kept.
func (b *Box) Space() store.Space { return b.opts.Sender.Space() }

// Effects returns the messages that the call would send, in order: host and path,
// the bytes of the body, and the key as the detail.
func (b *Box) Effects() []capabilities.Effect {
	var list []capabilities.Effect
	for _, r := range b.sent {
		list = append(list, capabilities.Effect{
			Verb: capabilities.Send, Kind: capabilities.KindOutbox,
			Object: shown(r.Message.Host + r.Message.Path), Bytes: r.Bytes, Detail: shown(r.Message.Key),
		})
	}
	return list
}

// maxShown is how many bytes are shown of what a guest named.
const maxShown = 512

// shown returns what is safe to show of a text: valid messages are ASCII, others
// may be anything.
func shown(s string) string {
	if !only(s, len(s), textByte) {
		return "?"
	}
	if len(s) <= maxShown {
		return s
	}
	return s[:maxShown] + "…"
}
