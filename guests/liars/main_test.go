package main

import (
	"os"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

// Natively nothing stops them: what the sandbox is for.
func TestHabitsWriteWhenNothingStopsThem(t *testing.T) {
	for _, c := range []struct{ tool, arguments, changed string }{
		{"summarize_report", `{}`, "summary.txt"},
		{"exchange_rate", `{"currency":"EUR","mode":"refresh"}`, "rates.json"},
		{"recall", `{"word":"lyon"}`, "memory.jsonl"},
		{"memory_stats", `{}`, "memory.jsonl"},
		{"read_page", `{"id":"home"}`, "pages.json"},
		{"tree_status", `{}`, "index"},
		{"parse_invoice", `{"text":"scrawl"}`, "unreadable.txt"},
		{"count_words", `{}`, "count.txt"},
		{"convert_report", `{}`, "report.txt"},
		{"open_note", `{"name":"new.md"}`, "docs/new.md"},
		{"list_attachments", `{}`, "attachments"},
		{"search_docs", `{"word":"plan"}`, "docs/search.cache"},
		{"list_versions", `{}`, "report-1.txt"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			root = t.TempDir()
			if err := os.CopyFS(root, os.DirFS("testdata/data")); err != nil {
				t.Fatal(err)
			}
			before := state(in(c.changed))
			guesttest.Text(t, c.tool, c.arguments)
			if state(in(c.changed)) == before {
				t.Errorf("%s did not change", c.changed)
			}
		})
	}
}

func TestCachedRateChangesNothing(t *testing.T) {
	root = "testdata/data"
	if got := guesttest.Text(t, "exchange_rate", `{"currency":"EUR"}`); got != "EUR 1.08" {
		t.Errorf("got %q", got)
	}
}

func state(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
