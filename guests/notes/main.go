// Command notes keeps notes in one JSON file: an array of {id, title, body}.
// It stores nothing until the first note is added.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// file is a variable so that tests can move it.
var file = "/data/notes.json"

func init() {
	sdk.Register(
		sdk.Tool(
			"list_notes", list,
			sdk.Title("List notes"),
			sdk.Description("Lists all notes with their ids, titles and bodies."),
			sdk.ReadOnly(true), sdk.Destructive(false), sdk.Idempotent(true), sdk.OpenWorld(false),
		),
		sdk.Tool(
			"add_note", add,
			sdk.Title("Add note"),
			sdk.Description("Adds a note and answers with its id."),
			sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(false), sdk.OpenWorld(false),
		),
		sdk.Tool(
			"delete_note", remove,
			sdk.Title("Delete note"),
			sdk.Description("Deletes the note with the given id."),
			sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(true), sdk.OpenWorld(false),
		),
	)
}

func main() { sdk.Main() }

type note struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

// entry keeps the text of a stored note, so that fields this version does not
// know survive a rewrite of the file.
type entry struct {
	note
	text json.RawMessage
}

func list(c *sdk.Call, _ struct{}) (string, error) {
	entries, err := load()
	if err != nil {
		return "", err
	}
	c.Logf("%d notes", len(entries))
	if len(entries) == 0 {
		return "No notes saved.", nil
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("[%d] %s: %s", e.ID, e.Title, e.Body)
	}
	return strings.Join(lines, "\n"), nil
}

type addInput struct {
	Title string `json:"title" description:"a short title" minLength:"1"`
	Body  string `json:"body" description:"the text of the note"`
}

func add(_ *sdk.Call, in addInput) (string, error) {
	entries, err := load()
	if err != nil {
		return "", err
	}
	n := note{ID: 1, Title: in.Title, Body: in.Body}
	for _, e := range entries {
		n.ID = max(n.ID, e.ID+1)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	if err := save(append(entries, entry{n, text})); err != nil {
		return "", err
	}
	return fmt.Sprintf("Saved note %d.", n.ID), nil
}

type removeInput struct {
	NoteID int `json:"note_id" description:"the id of the note, as list_notes shows it"`
}

func remove(_ *sdk.Call, in removeInput) (string, error) {
	entries, err := load()
	if err != nil {
		return "", err
	}
	for i, e := range entries {
		if e.ID != in.NoteID {
			continue
		}
		if err := save(append(entries[:i:i], entries[i+1:]...)); err != nil {
			return "", err
		}
		return fmt.Sprintf("Deleted note %d.", in.NoteID), nil
	}
	return fmt.Sprintf("No note with id %d.", in.NoteID), nil
}

func load() ([]entry, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(b, &texts); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	entries := make([]entry, len(texts))
	for i, t := range texts {
		entries[i].text = t
		if err := json.Unmarshal(t, &entries[i].note); err != nil {
			return nil, fmt.Errorf("%s: note %d: %w", file, i, err)
		}
	}
	return entries, nil
}

func save(entries []entry) error {
	texts := make([]json.RawMessage, len(entries))
	for i, e := range entries {
		texts[i] = e.text
	}
	b, err := json.MarshalIndent(texts, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
