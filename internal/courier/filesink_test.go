package courier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
)

func line(t testing.TB, raw []byte) Line {
	t.Helper()
	var l Line
	must(t, json.Unmarshal(raw, &l))
	return l
}

func TestFileSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	want := outbox.Message{Host: "h", Method: "POST", Path: "/x", ContentType: "a/b", Body: []byte("a\nb\xff"), Key: "k"}
	must(t, NewFileSink(path).Deliver(t.Context(), want))
	must(t, NewFileSink(path).Deliver(t.Context(), want))
	raw, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("got %q", raw)
	}
	for _, l := range lines {
		if got := line(t, l); fmt.Sprint(got.Message) != fmt.Sprint(want) || got.Time.IsZero() {
			t.Errorf("got %+v", got)
		}
	}
	i, err := os.Stat(path)
	must(t, err)
	if i.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("mode %v", i.Mode())
	}
}

// What a crash cut off spoils no other line.
func TestFileSinkAfterTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	must(t, os.WriteFile(path, []byte("{\"key\":\"whole\"}\n{\"key\":\"to"), 0o600))
	must(t, NewFileSink(path).Deliver(t.Context(), outbox.Message{Key: "next"}))
	raw, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.Split(raw, []byte("\n"))
	if len(lines) != 4 || line(t, lines[0]).Key != "whole" || line(t, lines[2]).Key != "next" {
		t.Errorf("got %q", raw)
	}
}

func TestFileSinkErrors(t *testing.T) {
	dir := t.TempDir()
	if err := NewFileSink(dir).Deliver(t.Context(), outbox.Message{}); !errors.Is(err, ErrIrregular) {
		t.Errorf("folder: %v", err)
	}
	if err := NewFileSink(filepath.Join(dir, "no", "f")).Deliver(t.Context(), outbox.Message{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(dir, "f")
	if err := NewFileSink(path).Deliver(ctx, outbox.Message{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made after the end: %v", err)
	}
}

// Lines do not mix, whoever writes them.
func TestFileSinkShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sent.jsonl")
	body := bytes.Repeat([]byte("x"), 20_000)
	var wg sync.WaitGroup
	for i := range 4 {
		s := NewFileSink(path)
		wg.Go(func() {
			for j := range 10 {
				if err := s.Deliver(context.Background(), outbox.Message{Key: fmt.Sprint(i, "-", j), Body: body}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	raw, err := os.ReadFile(path)
	must(t, err)
	keys := map[string]bool{}
	for l := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")) {
		if m := line(t, l); bytes.Equal(m.Body, body) {
			keys[m.Key] = true
		}
	}
	if len(keys) != 40 {
		t.Errorf("%d whole messages", len(keys))
	}
}
