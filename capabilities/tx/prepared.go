package tx

import (
	"encoding/json"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Prepared is what a call would leave, complete enough to be committed by
// another process. It encodes as JSON.
type Prepared struct {
	Changes map[string]*volume.Change `json:"changes"`          // by volume name, of those that the call looked at, also where only guards are in it
	Others  map[string]*Part          `json:"others,omitempty"` // by participant, of those that the call looked at
	// Effects are what the call read, which may be cut, and then all that it
	// would leave.
	Effects []capabilities.Effect `json:"effects"`
}

// Part is what a call would leave in one participant.
type Part struct {
	redo Redo
	raw  []byte // where it was decoded and not given to its participant yet
}

// MarshalJSON writes the redo of the participant.
func (p *Part) MarshalJSON() ([]byte, error) {
	if p.redo == nil {
		return p.raw, nil
	}
	return json.Marshal(p.redo)
}

// UnmarshalJSON keeps the text for the participant that knows how to read it.
func (p *Part) UnmarshalJSON(b []byte) error {
	p.raw = append([]byte(nil), b...)
	return nil
}

func (p *Prepared) change(name string, c *volume.Change) {
	if p.Changes == nil {
		p.Changes = map[string]*volume.Change{}
	}
	p.Changes[name] = c
}

func (p *Prepared) add(name string, r Redo) {
	if p.Others == nil {
		p.Others = map[string]*Part{}
	}
	p.Others[name] = &Part{redo: r}
}

// decode has each participant read what is for it. What is for none is refused.
func (p *Prepared) decode(others []Participant) error {
	if len(p.Others) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, o := range others {
		known[o.Name()] = true
		part := p.Others[o.Name()]
		if part == nil || part.redo != nil {
			continue
		}
		r, err := o.Decode(part.raw)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name(), err)
		}
		part.redo = r
	}
	for name, part := range p.Others {
		if !known[name] || part == nil {
			return fmt.Errorf("%w: %q", ErrVolumes, name)
		}
	}
	return nil
}

// untouched reports whether the call looked at nothing, so that there is nothing to
// check either.
func (p *Prepared) untouched() bool {
	return len(p.Changes) == 0 && len(p.Others) == 0
}

// Empty reports whether committing would change nothing. Guards are checked
// all the same.
func (p *Prepared) Empty() bool {
	for _, c := range p.Changes {
		if c == nil || !c.Empty() {
			return false
		}
	}
	for _, part := range p.Others {
		if part == nil || part.redo == nil || !part.redo.Empty() {
			return false
		}
	}
	return true
}
