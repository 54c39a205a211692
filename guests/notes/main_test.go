package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

func TestNotes(t *testing.T) {
	file = filepath.Join(t.TempDir(), "notes.json")
	call := func(tool, arguments, want string) {
		t.Helper()
		if got := guesttest.Text(t, tool, arguments); got != want {
			t.Errorf("%s %s: got %q, want %q", tool, arguments, got, want)
		}
	}
	call("list_notes", `{}`, "No notes saved.")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("list_notes made the file: %v", err)
	}
	call("add_note", `{"title":"Milk","body":"two litres"}`, "Saved note 1.")
	call("add_note", `{"title":"Bread","body":""}`, "Saved note 2.")
	call("list_notes", `{}`, "[1] Milk: two litres\n[2] Bread: ")
	call("delete_note", `{"note_id":1}`, "Deleted note 1.")
	call("delete_note", `{"note_id":1}`, "No note with id 1.")
	call("add_note", `{"title":"Eggs","body":"six"}`, "Saved note 3.")

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []note
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := []note{{2, "Bread", ""}, {3, "Eggs", "six"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("stored %s", b)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	file = filepath.Join(t.TempDir(), "notes.json")
	if err := os.WriteFile(file, []byte(`[{"id":7,"title":"a","body":"b","pinned":true}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	guesttest.Text(t, "add_note", `{"title":"c","body":"d"}`)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0]["pinned"] != true || got[1]["id"] != 8.0 {
		t.Errorf("stored %s", b)
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
