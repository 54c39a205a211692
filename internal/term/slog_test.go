package term_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/internal/term"
)

func TestHandler(t *testing.T) {
	for format, want := range map[string]string{
		"text": `level=WARN msg="a\nb" tool="\x1b[31mred" g.bidi="x\u202ey" g.err=filler\u3164` + "\n",
		"json": `{"level":"WARN","msg":"a\nb","tool":"\u001b[31mred","g":{"bidi":"x\u202ey","err":"filler\u3164"}}` + "\n",
	} {
		var b bytes.Buffer
		l := slog.New(term.Handler(&b, format, nil))
		l.Debug("not shown")
		l.With("tool", "\x1b[31mred").WithGroup("g").Warn("a\nb", "bidi", "x\u202ey", "err", errors.New("filler\u3164"))
		got := withoutTime(b.String())
		if got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
}

// withoutTime cuts the first field, the time, off.
func withoutTime(line string) string {
	if rest, ok := strings.CutPrefix(line, `{"time":"`); ok {
		_, rest, _ = strings.Cut(rest, ",")
		return "{" + rest
	}
	_, rest, _ := strings.Cut(line, " ")
	return rest
}

type errWriter struct{}

var errFull = errors.New("full")

func (errWriter) Write([]byte) (int, error) { return 0, errFull }

func TestHandlerTellsOfWriteErrors(t *testing.T) {
	h := term.Handler(errWriter{}, "text", slog.LevelDebug)
	if err := h.Handle(t.Context(), slog.Record{Message: "x"}); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// Whatever is logged, each record is one line without a character that misleads.
func FuzzHandler(f *testing.F) {
	f.Add("msg", "key", "value")
	f.Add("a\nb\r", "k\x1b=\u202e", "\x00\x9b\xff\u2028\U000E0041\ufeff")
	f.Add("", "", `"quoted" \u202e`)
	f.Fuzz(func(t *testing.T, msg, key, value string) {
		for _, format := range []string{"text", "json"} {
			var b bytes.Buffer
			l := slog.New(term.Handler(&b, format, nil)).WithGroup("g"+key).With(key, value)
			l.Info(msg, key, []byte(value), slog.Group(key, "in", errors.New(value)), "raw", json.RawMessage(value))
			line, ok := strings.CutSuffix(b.String(), "\n")
			if !ok || !utf8.ValidString(line) || strings.IndexFunc(line, term.Hidden) >= 0 {
				t.Fatalf("%s: %q", format, b.String())
			}
			if format == "json" && !json.Valid([]byte(line)) {
				t.Fatalf("not JSON: %s", line)
			}
		}
	})
}
