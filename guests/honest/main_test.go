//go:build !wasip1

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// seed lays out the volume of one test.
func seed(t *testing.T) {
	t.Helper()
	root, scratch = t.TempDir(), t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("archive/v2.txt", in("current")); err != nil {
		t.Fatal(err)
	}
}

func TestReadersChangeNothing(t *testing.T) {
	for tool, want := range map[string]string{
		"sort_lines":    "apples\npears\nquinces",
		"ensure_folder": "2 entries.",
		"forget_cache":  "pears\napples\nquinces\n",
		"edit_or_view":  "pears\napples\nquinces\n",
		"open_database": "record one",
		"lock_state":    "The lock is held.",
		"follow_log":    "08:05 ready",
		"count_lines":   "11 lines.",
		"read_current":  "version 2\n",
		"settle_name":   "pears\napples\nquinces\n",
		"tidy_archive":  "2025\nv2.txt",
	} {
		t.Run(tool, func(t *testing.T) {
			seed(t)
			before := contents(t)
			if got := guesttest.Text(t, tool, `{}`); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if after := contents(t); after != before {
				t.Errorf("changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestWriters(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"delete_entry", `{"line":"pears"}`, "Deleted."},
		{"delete_entry", `{"line":"pears"}`, "There is no such line."},
		{"add_setting", `{"key":"colour","value":"blue"}`, "Added."},
		{"archive_list", `{"name":"autumn"}`, "Archived."},
		{"archive_list", `{"name":"autumn"}`, "It is archived already."},
	} {
		if got := guesttest.Text(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s: got %q, want %q", c.tool, got, c.want)
		}
	}
	if r := guesttest.Call(t, "add_setting", `{"key":"width","value":"1"}`); !r.IsError {
		t.Error("a setting was replaced")
	}
	for name, want := range map[string]string{
		"list.txt":           "apples\nquinces\n",
		"settings.json":      "{\n  \"colour\": \"blue\",\n  \"language\": \"en\",\n  \"width\": 80\n}\n",
		"archive/autumn.txt": "apples\nquinces\n",
	} {
		if b, err := os.ReadFile(in(name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
	}
}

func TestRepeats(t *testing.T) {
	seed(t)
	kv.Reset()
	for _, c := range []struct{ tool, arguments, want string }{
		{"write_file", `{"page":"home","text":"a"}`, "Written."},
		{"create_directory", `{"folder":"drafts"}`, "It is there."},
		{"upsert_contact", `{"name":"Ada","phone":"1"}`, "Saved."},
		{"daily_digest", `{"topic":"plums"}`, "Added."},
	} {
		if got := guesttest.Text(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s: got %q, want %q", c.tool, got, c.want)
		}
		before := contents(t) + keys(t)
		guesttest.Text(t, c.tool, c.arguments)
		if after := contents(t) + keys(t); after != before {
			t.Errorf("%s: a second call changed\n%s\nto\n%s", c.tool, before, after)
		}
	}
}

// After a day the digest takes the same topic again.
func TestDigestForgets(t *testing.T) {
	seed(t)
	kv.Reset()
	guesttest.Text(t, "daily_digest", `{"topic":"plums"}`)
	long := time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
	if err := kv.Put("digest/plums", []byte(long)); err != nil {
		t.Fatal(err)
	}
	guesttest.Text(t, "daily_digest", `{"topic":"plums"}`)
	if b, err := os.ReadFile(in("digest.txt")); err != nil || string(b) != "plums\nplums\n" {
		t.Errorf("digest %q, %v", b, err)
	}
}

func TestAdders(t *testing.T) {
	kv.Reset()
	for _, c := range []struct{ tool, arguments, want string }{
		{"count_page", `{"page":"home"}`, "1 visits."},
		{"count_page", `{"page":"home"}`, "2 visits."},
		{"log_event", `{"event":"opened"}`, "Added."},
		{"log_event", `{"event":"closed"}`, "Added."},
		{"show_visits", `{}`, "home: 2\n"},
	} {
		if got := guesttest.Text(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s: got %q, want %q", c.tool, got, c.want)
		}
	}
	list, err := kv.Scan("journal/", "journal0", 0)
	if err != nil || len(list) == 0 || !strings.HasSuffix(string(list[len(list)-1].Value), "closed\n") {
		t.Errorf("journal %v, %v", list, err)
	}
}

// keys returns all keys with their values.
func keys(t *testing.T) string {
	t.Helper()
	list, err := kv.Scan("", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q", list)
}

// contents returns names and texts of all files of the volume.
func contents(t *testing.T) string {
	t.Helper()
	var all string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		all += name + " " + d.Type().String() + "\n"
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(name)
			all += string(b)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
