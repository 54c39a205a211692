package filetools

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type readInput struct {
	Path string  `json:"path"`
	Tail float64 `json:"tail,omitempty" description:"If provided, returns only the last N lines of the file"`
	Head float64 `json:"head,omitempty" description:"If provided, returns only the first N lines of the file"`
}

func readTextFile(_ *sdk.Call, in readInput) (content, error) {
	name, err := validate(in.Path)
	if err != nil {
		return content{}, err
	}
	if in.Head != 0 && in.Tail != 0 {
		return content{}, refusal("Cannot specify both head and tail parameters simultaneously")
	}
	text, err := readText(name)
	switch {
	case err != nil:
		return content{}, err
	case in.Tail != 0:
		return content{tail(text, lines(in.Tail))}, nil
	case in.Head != 0:
		return content{head(text, lines(in.Head))}, nil
	}
	return content{text}, nil
}

// readText reads a file as UTF-8.
func readText(name string) (string, error) {
	b, err := os.ReadFile(name)
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Op == "open" {
		return "", failed("open", name, err)
	}
	if err != nil {
		return "", failed("read", "", err)
	}
	return decode(b), nil
}

// lines turns a number of lines, which JSON may give with a fraction or beyond an
// int, into one to count with.
func lines(n float64) int { return int(math.Ceil(min(max(n, 0), math.MaxInt32))) }

// head returns the first n lines as they are, without a line break after the last.
func head(text string, n int) string {
	at := 0
	for ; n > 0; n-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return strings.TrimSuffix(text, "\n")
		}
		at += i + 1
	}
	return strings.TrimSuffix(text[:at], "\n")
}

// tail returns the last n lines. What follows the last line break counts as a line,
// also where it is empty.
func tail(text string, n int) string {
	text = unixLines(text)
	at := len(text)
	for ; n > 0; n-- {
		i := strings.LastIndexByte(text[:at], '\n')
		if i < 0 {
			return text
		}
		at = i
	}
	if at == len(text) {
		return ""
	}
	return text[at+1:]
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// decode reads UTF-8. Each longest beginning of a character that does not go on as
// one is one U+FFFD, and so is any other wrong byte (WHATWG Encoding, 8.1.1).
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			size = beginning(b)
		}
		out.WriteRune(r)
		b = b[size:]
	}
	return out.String()
}

// beginning returns how many bytes of b, which is no character, could begin one.
func beginning(b []byte) int {
	n := 0
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return max(n, 1)
}
