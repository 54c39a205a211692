package hostmcp

import (
	"math"
	"slices"
	"unicode/utf8"
)

// What a guest may send during one call.
const (
	MaxNotes = 1000 // progress and log messages together
	MaxBytes = 4096 // of one message
)

// Levels are those of log messages, from the least to the most severe (RFC
// 5424, section 6.2.1; schema.ts, LoggingLevel).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Receiver gets what a guest sends, from the goroutine of the call. Texts are
// valid UTF-8 of at most [MaxBytes]. Nil functions drop.
type Receiver struct {
	Progress func(progress, total float64, message string) // total 0: not known
	Log      func(level, text string)
}

// Notes are what a guest sends during one call, all of its runs included. What it
// is answered follows from its own run alone: a guest that is run again must not
// know it. They serve one guest at a time and are not safe for concurrent use.
type Notes struct {
	to      Receiver
	dropped int
	run     count // what was taken in this run
	call    count // what was delivered in all of them
}

// count is how many messages there were, and the furthest progress of them.
type count struct {
	sent     int
	begun    bool
	progress float64
}

// further reports whether a progress is more than all before.
func (c *count) further(progress float64) bool { return !c.begun || progress > c.progress }

// NewNotes returns the notes of a call.
func NewNotes(to Receiver) *Notes { return &Notes{to: to} }

// Again begins another run of the call. What the client has been told of is not told
// again, as far as progress goes: it never goes back.
func (n *Notes) Again() { n.run = count{} }

// Dropped returns how many messages were not delivered because they were not
// valid or too many.
func (n *Notes) Dropped() int { return n.dropped }

// sendProgress delivers how far the call is. It must be further than before
// (schema.ts, ProgressNotificationParams).
func (n *Notes) sendProgress(progress, total float64, message []byte) errno {
	if !finite(progress) || !finite(total) || total < 0 || !n.run.further(progress) {
		return n.drop(eINVAL)
	}
	if e := n.admit(message); e != success {
		return e
	}
	n.run.begun, n.run.progress = true, progress
	if !n.call.further(progress) {
		return success // told by an earlier run
	}
	if n.deliver() {
		n.call.begun, n.call.progress = true, progress
		if n.to.Progress != nil {
			n.to.Progress(progress, total, string(message))
		}
	}
	return success
}

func (n *Notes) sendLog(level string, text []byte) errno {
	if !slices.Contains(levels, level) {
		return n.drop(eINVAL)
	}
	if e := n.admit(text); e != success {
		return e
	}
	if n.deliver() && n.to.Log != nil {
		n.to.Log(level, string(text))
	}
	return success
}

// admit counts a message of the run and checks its text.
func (n *Notes) admit(text []byte) errno {
	switch {
	case len(text) > MaxBytes:
		return n.drop(eMSGSIZE)
	case !utf8.Valid(text):
		return n.drop(eILSEQ)
	case n.run.sent == MaxNotes:
		return n.drop(eNOBUFS)
	}
	n.run.sent++
	return success
}

// deliver reports whether the client may get one more message of the call.
func (n *Notes) deliver() bool {
	if n.call.sent == MaxNotes {
		n.dropped++
		return false
	}
	n.call.sent++
	return true
}

func (n *Notes) drop(e errno) errno {
	n.dropped++
	return e
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
