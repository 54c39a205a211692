package sdk

import (
	"strings"
	"unicode/utf8"
)

// maxNote is how long a message may be, in bytes; the host drops longer ones.
const maxNote = 4096

// Note is one message of a call to its client: progress, or where Level is set,
// a line of the log.
type Note struct {
	Progress, Total float64
	Message         string
	Level, Text     string
}

// Progress tells the client how far the call is: progress of total, in any unit;
// a total of 0 is one that is not known. progress must grow from message to
// message. The host drops what does not, and what is more than 1000 messages in
// a call. Messages longer than 4096 bytes are cut.
func (c *Call) Progress(progress, total float64, message string) {
	c.note(Note{Progress: progress, Total: total, Message: short(message)})
}

// Log writes a line to the client's log, where the client asked for that. level
// is debug, info, notice, warning, error, critical, alert or emergency. Progress
// and Log together may send 1000 messages in a call; texts longer than 4096
// bytes are cut. See [Call.Logf] for the operator's log.
func (c *Call) Log(level, text string) {
	c.note(Note{Level: level, Text: short(text)})
}

// short returns valid UTF-8 of at most maxNote bytes.
func short(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxNote {
		return s
	}
	n := maxNote
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
