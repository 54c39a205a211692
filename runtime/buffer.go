package runtime

import (
	"bytes"

	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// cappedWriter keeps what is written up to limit bytes and refuses the rest
// with a [*wasi.OutputLimitError]. It is not safe for concurrent use.
type cappedWriter struct {
	bytes.Buffer
	limit int
}

// Write keeps all of p or none of it.
func (c *cappedWriter) Write(p []byte) (int, error) {
	if len(p) > c.limit-c.Len() {
		return 0, &wasi.OutputLimitError{Limit: c.limit}
	}
	return c.Buffer.Write(p)
}

// cappedBuffer keeps the first limit bytes that are written and drops the rest
// without an error. It is not safe for concurrent use.
type cappedBuffer struct {
	limit int
	b     []byte
}

// Write keeps what fits and reports all as written.
func (c *cappedBuffer) Write(p []byte) (int, error) {
	c.b = append(c.b, p[:min(len(p), c.limit-len(c.b))]...)
	return len(p), nil
}
