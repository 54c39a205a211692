package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// What one result may hold: clients have their own limits, and some end with an
// exception where these are passed. What is read into values takes many times
// the memory of what is written.
const (
	maxContentItems = 1000
	maxValues       = 1 << 18 // values of the JSON of a result, in all
)

// escapeRoom is how many times the output limit a result may take as it is
// sent: what JSON escapes takes up to six bytes for one.
const escapeRoom = 2

// sentRoom is what every result may take beyond that.
const sentRoom = 4 << 10

// errTwice: a field of a result is there more than once.
var errTwice = errors.New("is there twice")

// text returns an output of one text content (schema.ts, TextContent).
func text(isError bool, s string) Output {
	return Output{Content: []json.RawMessage{textContent(s)}, IsError: isError}
}

func textContent(s string) json.RawMessage { return plainContent([]byte(s)) }

// plainContent returns bytes as a text content. What is no UTF-8 is replaced.
func plainContent(s []byte) json.RawMessage {
	const head, tail = `{"type":"text","text":"`, `"}`
	b := make([]byte, 0, len(head)+len(tail)+quotedSize(s))
	return append(appendQuoted(append(b, head...), s), tail...)
}

// quotedSize returns how many bytes appendQuoted appends.
func quotedSize(s []byte) (n int) {
	var one [16]byte
	for len(s) > 0 {
		if plain := unremarkableASCII(s); plain > 0 {
			n, s = n+plain, s[plain:]
			continue
		}
		_, size := utf8.DecodeRune(s)
		n += len(appendQuoted(one[:0], s[:size]))
		s = s[size:]
	}
	return n
}

// appendQuoted appends what stands between the quotes of a JSON text.
func appendQuoted(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	for len(s) > 0 {
		if n := unremarkableASCII(s); n > 0 {
			b, s = append(b, s[:n]...), s[n:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b = utf8.AppendRune(b, utf8.RuneError)
		case r == '"', r == '\\':
			b = append(b, '\\', s[0])
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
	return b
}

// unremarkableASCII returns how many bytes come before the first that is not written
// as it is, or begins a character beyond ASCII.
func unremarkableASCII(s []byte) int {
	for i, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(s)
}

// plainOutput returns what a guest wrote as a result of one text. It returns a
// [*LimitError] where that is too large to be sent under limit, bytes.
func plainOutput(isError bool, b []byte, limit int64) (Output, error) {
	if quotedSize(b)+sentSize(b)-len(b) > sentMost(limit) {
		return Output{}, &LimitError{Limit: "output"}
	}
	return Output{Content: []json.RawMessage{plainContent(b)}, IsError: isError}, nil
}

// sentMost is how many bytes a result may take as it is sent.
func sentMost(limit int64) int { return int(limit)*escapeRoom + sentRoom }

// sentSize returns how many bytes JSON takes where markup is escaped in it, as
// encoding/json and servers of MCP built on it do.
func sentSize(b []byte) int {
	n := len(b)
	for _, s := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		n += (len(`\u0000`) - len(s)) * bytes.Count(b, []byte(s))
	}
	return n
}

// charge reports whether n is left, and takes it.
func charge(left *int, n int) bool {
	*left -= n
	return *left >= 0
}

// resultFields are the fields of a tool result.
type resultFields struct{ content, structured, isError, meta field }

// parseOutput reads what a guest answered: an MCP tool result, which is a JSON
// object with a content array or a structuredContent, or else plain text. It
// returns how many of the guest's _meta keys it dropped. The structured content
// is left as it was written. The answer is measured before memory is taken for
// what is in it; what is more than a result may hold is an error, and a
// [*LimitError] where it is too large to be sent under limit, bytes. The error
// is the cause of ctx when that ends first.
func parseOutput(ctx context.Context, b []byte, limit int64) (Output, int, error) {
	f, ok, err := scanResult(ctx, b)
	if err != nil {
		return Output{}, 0, err
	}
	if !ok {
		out, err := plainOutput(false, bytes.TrimSuffix(b, []byte("\n")), limit)
		return out, 0, err
	}
	if err := f.check(); err != nil {
		return Output{}, 0, err
	}
	return f.output(ctx, sentMost(limit))
}

// scanResult finds the fields of an answer; ok where it is meant as a tool
// result.
func scanResult(ctx context.Context, b []byte) (f resultFields, ok bool, err error) {
	s := &scanner{ctx: ctx, in: b}
	if s.peek() != '{' {
		return f, false, nil
	}
	err = s.members(0, func(key []byte) error {
		switch string(nameOf(key)) {
		case "content":
			return s.measure(&f.content)
		case "structuredContent":
			return s.measure(&f.structured)
		case "isError":
			return s.measure(&f.isError)
		case "_meta":
			return s.measure(&f.meta)
		}
		return s.value(1)
	})
	switch {
	case errors.Is(err, errSyntax), err == nil && s.peek() != 0, err == nil && s.at < len(b):
		return f, false, nil
	case err != nil:
		return f, false, err
	case f.content.raw == nil:
		return f, f.structured.raw != nil, nil
	}
	return f, f.content.raw[0] == '[', nil
}

// check holds the measures of a result against what one may hold.
func (f *resultFields) check() error {
	fields := []struct {
		name string
		*field
	}{{"content", &f.content}, {"structuredContent", &f.structured}, {"isError", &f.isError}, {"_meta", &f.meta}}
	values := 0
	for _, x := range fields {
		if x.twice {
			return fmt.Errorf("%s: %w", x.name, errTwice)
		}
		values += x.values
	}
	if f.content.size > maxContentItems {
		return fmt.Errorf("content: %d items, at most %d", f.content.size, maxContentItems)
	}
	if values > maxValues {
		return fmt.Errorf("%d values, at most %d", values, maxValues)
	}
	return nil
}

// output reads a result that may take so many bytes as it is sent.
func (f *resultFields) output(ctx context.Context, left int) (out Output, dropped int, err error) {
	if err := decode(f.isError.raw, &out.IsError); err != nil {
		return Output{}, 0, fmt.Errorf("isError: %w", err)
	}
	var meta guestMeta
	if err := decode(f.meta.raw, &meta); err != nil {
		return Output{}, 0, fmt.Errorf("_meta: %w", err)
	}
	out.Meta, dropped = meta.keys, meta.dropped
	if s := f.structured.raw; string(s) != "null" {
		out.StructuredContent = s
	}
	fits := charge(&left, sentSize(f.meta.raw)) && charge(&left, sentSize(out.StructuredContent))
	out.Content = make([]json.RawMessage, 0, f.content.size)
	s := &scanner{ctx: ctx, in: f.content.raw}
	if len(s.in) == 0 {
		s.in = []byte("[]")
	}
	err = s.items(1, func() error {
		s.peek()
		start := s.at
		if err := s.value(2); err != nil {
			return err
		}
		if !fits {
			return &LimitError{Limit: "output"}
		}
		block, n, err := cleanContent(s.in[start:s.at])
		if err != nil {
			return fmt.Errorf("content[%d]: %w", len(out.Content), err)
		}
		fits = charge(&left, sentSize(block))
		out.Content, dropped = append(out.Content, block), dropped+n
		return nil
	})
	if err == nil && !fits {
		err = &LimitError{Limit: "output"}
	}
	if err != nil {
		return Output{}, 0, err
	}
	return out, dropped, nil
}

// decode reads a value that may not be there.
func decode(raw []byte, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}
