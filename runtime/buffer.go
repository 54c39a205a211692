package runtime

import (
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// cappedWriter keeps what is written up to limit bytes and refuses the rest
// with a [*wasi.OutputLimitError]. It is not safe for concurrent use.
type cappedWriter struct {
	limit int
	b     []byte
}

// Write keeps all of p or none of it.
func (c *cappedWriter) Write(p []byte) (int, error) {
	if len(p) > c.limit-len(c.b) {
		return 0, &wasi.OutputLimitError{Limit: c.limit}
	}
	c.b = appendCapped(c.b, p, c.limit)
	return len(p), nil
}

// appendCapped appends p to b, which stays within limit, and takes no more memory
// for it than that.
func appendCapped(b, p []byte, limit int) []byte {
	if need := len(b) + len(p); need > cap(b) {
		grown := make([]byte, len(b), min(max(2*cap(b), need, 512), max(limit, need)))
		copy(grown, b)
		b = grown
	}
	return append(b, p...)
}

// cappedBuffer keeps the first limit bytes that are written and drops the rest
// without an error. It is not safe for concurrent use.
type cappedBuffer struct {
	limit int
	b     []byte
}

// Write keeps what fits and reports all as written.
func (c *cappedBuffer) Write(p []byte) (int, error) {
	c.b = appendCapped(c.b, p[:min(len(p), c.limit-len(c.b))], c.limit)
	return len(p), nil
}
