package term

import (
	"bytes"
	"io"
	"log/slog"
)

// Handler returns a handler of structured logs that writes one line a record:
// a JSON object where format is "json", else key=value text. Whatever a message,
// key or value holds, the line has no character that [Hidden] knows. A nil level
// is slog.LevelInfo. Writes are not made at the same time.
func Handler(w io.Writer, format string, level slog.Leveler) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.NewJSONHandler(&lineWriter{w, JSON}, o)
	}
	return slog.NewTextHandler(&lineWriter{w, func(b []byte) []byte { return []byte(Line(string(b))) }}, o)
}

// lineWriter escapes what slog's handlers write, each record with one write.
// The handlers quote controls themselves, but not all that misleads a reader.
type lineWriter struct {
	w      io.Writer
	escape func([]byte) []byte
}

func (l *lineWriter) Write(b []byte) (int, error) {
	line := append(l.escape(bytes.TrimSuffix(b, []byte{'\n'})), '\n')
	if _, err := l.w.Write(line); err != nil {
		return 0, err
	}
	return len(b), nil
}
