//go:build !wasip1

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
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
			seed(t)
			before := state(in(c.changed))
			guesttest.Text(t, c.tool, c.arguments)
			if state(in(c.changed)) == before {
				t.Errorf("%s did not change", c.changed)
			}
		})
	}
}

// The additive liars lose what the cases say, natively where nothing judges them.
func TestLosses(t *testing.T) {
	kv.Reset()
	for _, c := range []struct{ tool, arguments, file, want string }{
		{"add_note_lossy", `{"title":"Bread","body":""}`, "notes.json", "[\n  {\n    \"id\": 1,\n    \"title\": \"Milk\",\n    \"body\": \"two litres\"\n  },\n  {\n    \"id\": 2,\n    \"title\": \"Bread\",\n    \"body\": \"\"\n  }\n]"},
		{"add_amount", `{"cents":50}`, "amounts.txt", "7\n1250"},
		{"start_log", `{}`, "log.txt", "open log.txt: no such file"},
	} {
		seed(t)
		guesttest.Text(t, c.tool, c.arguments)
		got := strings.ReplaceAll(state(in(c.file)), root+"/", "")
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s left %q, want %q", c.tool, got, c.want)
		}
	}
	for _, phone := range []string{"1", "2"} {
		guesttest.Text(t, "save_contact", `{"name":"Ada","phone":"`+phone+`"}`)
	}
	if v, _, err := kv.Get("contact/Ada"); err != nil || string(v) != "2" {
		t.Errorf("contact: %q, %v", v, err)
	}
}

// A second call of a tool that claims to be idempotent changes something further.
func TestRepeats(t *testing.T) {
	for _, c := range []struct{ tool, arguments, changed string }{
		{"log_visit", `{"name":"Ada"}`, "visitors.txt"},
		{"mark_checked", `{}`, "checked.txt"},
		{"open_ticket", `{"subject":"a"}`, "."},
		{"count_visit", `{"tell":"clock"}`, "visits-clock.txt"},
		{"count_visit", `{"tell":"random"}`, "visits-random.txt"},
		{"count_visit", `{"tell":"mtime"}`, "visits-mtime.txt"},
	} {
		seed(t)
		guesttest.Text(t, c.tool, c.arguments)
		if c.changed == "visits-mtime.txt" {
			early := time.Now().Add(-2 * recent)
			if err := os.Chtimes(in(c.changed), early, early); err != nil {
				t.Fatal(err)
			}
		}
		before := state(in(c.changed))
		guesttest.Text(t, c.tool, c.arguments)
		if state(in(c.changed)) == before {
			t.Errorf("%s %s: %s did not change", c.tool, c.arguments, c.changed)
		}
	}
}

// A tool that counts once where its surroundings look as they did: what the call
// id, the inode and the order of names are under guesttest.
func TestTellsThatLookTheSame(t *testing.T) {
	for _, tell := range []string{"call_id", "inode", "order", "mtime", "times"} {
		seed(t)
		guesttest.Text(t, "count_visit", `{"tell":"`+tell+`"}`)
		guesttest.Text(t, "count_visit", `{"tell":"`+tell+`"}`)
		if got := state(in("visits-" + tell + ".txt")); got != "visit\n" {
			t.Errorf("%s: %q", tell, got)
		}
	}
}

// The senders send natively, and do what else the cases say.
func TestSenders(t *testing.T) {
	seed(t)
	log := state(in("log.txt"))
	for _, c := range []struct{ tool, arguments, file, want string }{
		{"open_letter", `{}`, "log.txt", log},
		{"save_draft", `{"text":"Dear Ada"}`, "draft.txt", "Dear Ada\n"},
		{"forward_log", `{}`, "log.txt", ""},
		{"remind", `{"name":"Ada"}`, "log.txt", log},
	} {
		seed(t)
		outbox.Reset()
		guesttest.Text(t, c.tool, c.arguments)
		guesttest.Text(t, c.tool, c.arguments)
		if sent := outbox.Sent(); len(sent) != 2 || sent[0].Host != "mail.example.com" {
			t.Errorf("%s sent %v", c.tool, sent)
		}
		if got := state(in(c.file)); got != c.want {
			t.Errorf("%s left %q", c.tool, got)
		}
	}
}

func seed(t *testing.T) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/data")); err != nil {
		t.Fatal(err)
	}
}

func TestCachedRateChangesNothing(t *testing.T) {
	root = "testdata/data"
	if got := guesttest.Text(t, "exchange_rate", `{"currency":"EUR"}`); got != "EUR 1.08" {
		t.Errorf("got %q", got)
	}
}

// state returns what a file holds, or the names in a folder.
func state(name string) string {
	if entries, err := os.ReadDir(name); err == nil {
		return fmt.Sprint(entries)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
