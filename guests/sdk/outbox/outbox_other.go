//go:build !wasip1

package outbox

import (
	"slices"
	"strings"
	"sync"
)

// memory are the messages where there is no host to deliver them.
var memory struct {
	sync.Mutex
	sent []Message
}

// Sent returns the messages since the last Reset, in the order in which they
// were sent. It is there only in programs that are built for the machine itself.
func Sent() []Message {
	memory.Lock()
	defer memory.Unlock()
	return slices.Clone(memory.sent)
}

// Reset forgets all messages. It is there only in programs that are built for
// the machine itself.
func Reset() {
	memory.Lock()
	defer memory.Unlock()
	memory.sent = nil
}

// Send hands a message over. It is delivered once the call has ended well. A
// message with a key that was sent before is taken and not sent again.
func Send(m Message) error {
	if m.Method == "" {
		m.Method = "POST"
	}
	if m.Path == "" {
		m.Path = "/"
	}
	switch {
	case len(m.Body) > MaxBody:
		return ErrTooLarge
	case m.Host == "" || !only(m.Host, 261, func(r rune) bool { return strings.ContainsRune(hostRunes, r) }),
		m.Method != "POST" && m.Method != "PUT",
		!strings.HasPrefix(m.Path, "/") || !only(m.Path, 4096, visible) || strings.ContainsAny(m.Path, `#\`),
		!only(m.ContentType, 256, func(r rune) bool { return r == ' ' || visible(r) }) || strings.TrimSpace(m.ContentType) != m.ContentType,
		!only(m.Key, 256, visible):
		return ErrMessage
	}
	m.Body = slices.Clone(m.Body)
	memory.Lock()
	defer memory.Unlock()
	for _, s := range memory.sent {
		if m.Key != "" && s.Host == m.Host && s.Key == m.Key {
			return nil
		}
	}
	memory.sent = append(memory.sent, m)
	return nil
}

const hostRunes = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]"

func visible(r rune) bool { return r > ' ' && r <= '~' }

// only reports whether s has at most n bytes, all of a sort.
func only(s string, n int, sort func(rune) bool) bool {
	return len(s) <= n && strings.IndexFunc(s, func(r rune) bool { return !sort(r) }) < 0
}
