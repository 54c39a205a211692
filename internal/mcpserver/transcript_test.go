package mcpserver_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A transcript is a file of two parts: what a client writes, a line each, and
// what the server answers, by id. Lines before the first part are a comment.
const (
	clientMark = "-- client --\n"
	serverMark = "-- server --\n"
)

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, rest, _ := strings.Cut(string(b), clientMark)
			client, want, _ := strings.Cut(rest, serverMark)
			got := replay(t, client)
			if *update {
				if err := os.WriteFile(file, []byte(head+clientMark+client+serverMark+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("answers differ from %s (-update writes them):\n%s", file, got)
			}
		})
	}
}

// replay writes all the client's lines, closes, and returns the answers.
func replay(t *testing.T, client string) string {
	t.Helper()
	listed := &fakePackage{name: "claims", own: "claims", call: newOutcomes().call}
	listed.tools = append(listed.tools,
		newTool("list_nothing_declared", capabilities.Claim{}),
		newTool("list_read_only", capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False}),
		newTool("list_additive", capabilities.Claim{ReadOnly: capabilities.False, Destructive: capabilities.False, Idempotent: capabilities.True}),
	)
	s := newServer(t, listed)
	if !strings.Contains(client, "tools/list") {
		s = newServer(t, newOutcomes())
	}
	var out bytes.Buffer
	if err := s.ServeStdio(context.Background(), strings.NewReader(client), &out); err != nil {
		t.Fatalf("serve: %v", err)
	}
	type message struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result,omitempty"`
		Error  json.RawMessage `json:"error,omitempty"`
	}
	var ms []message
	for line := range strings.Lines(out.String()) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("answer %q: %v", line, err)
		}
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b message) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), bytes.Compare(a.ID, b.ID))
	})
	var b strings.Builder
	for _, m := range ms {
		raw, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	return b.String()
}
