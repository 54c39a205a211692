package outbox

import (
	"errors"
	"fmt"
)

// MaxBody is how long a body may be, in bytes.
const MaxBody = 1 << 20

// Message is what is delivered: an HTTP request, in the terms of that.
type Message struct {
	Host        string // "hooks.example.com", with a port where it is not that of https
	Method      string // "POST" or "PUT"; empty: "POST"
	Path        string // "/v1/events", with a query where there is one; empty: "/"
	ContentType string // empty: none is sent
	Body        []byte // up to 1 MiB
	Key         string // up to 256 characters of ASCII without spaces; empty: made by the host
}

// The errors of sending, matched with errors.Is.
var (
	ErrMessage  = errors.New("message: host, method, path, content type or key is not valid")
	ErrTooLarge = errors.New("message: body longer than 1 MiB")
	ErrDenied   = errors.New("outbox not granted for this host")
	ErrTooMany  = errors.New("more messages than a call may send")
	ErrFull     = errors.New("no room for more messages")
	ErrNoCall   = errors.New("no outbox outside of a call")
)

// Errno is an answer of the host that has no error of its own here, a number of
// WASI preview 1.
type Errno uint32

// Error returns the number in words.
func (e Errno) Error() string { return fmt.Sprintf("outbox: error %d of the host", uint32(e)) }
