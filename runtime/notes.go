package runtime

import (
	"github.com/sandboxd/sandboxd/runtime/hostmcp"
)

// listen makes the notes of the call, which go to the client. What panics there
// is a fault of the host.
func (w *reporter) listen(to Notify) {
	var r hostmcp.Receiver
	if f := to.Progress; f != nil {
		r.Progress = func(progress, total float64, message string) {
			w.safely(func() { f(Progress{Progress: progress, Total: total, Message: message}) })
		}
	}
	if f := to.Log; f != nil {
		r.Log = func(level, text string) { w.safely(func() { f(LogMessage{Level: level, Text: text}) }) }
	}
	w.notes = hostmcp.NewNotes(r)
}
