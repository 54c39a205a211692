package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// Notes in a JSON file, which is rewritten as a whole for each change.
func init() {
	sdk.Register(
		define("add_note", "FFFF", "Adds a note; the file is emptied and written again (F01, I06, D07).", addNote),
		define("delete_note", "FTTF", "Deletes a note; the next one may get its id (I06).", deleteNote),
		define("ap_manage_notes", "FF-F", "Adds, updates or deletes a note (D03).", manageNotes),
		define("xcode_ide_call_tool", "FF--", "Calls another tool (D02).", callTool),
	)
}

const notesFile = "notes.json"

type note struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

type textInput struct {
	Text string `json:"text" minLength:"1"`
}

// addNote reports its progress between reading and writing: the place where
// somebody else may write.
func addNote(c *sdk.Call, q textInput) (string, error) {
	var notes []note
	if err := loadJSON(notesFile, &notes); err != nil {
		return "", err
	}
	c.Progress(1, 2, "read")
	id := 1
	for _, n := range notes {
		id = max(id, n.ID+1)
	}
	return fmt.Sprintf("Saved note %d.", id), saveJSON(notesFile, append(notes, note{id, q.Text}))
}

type idInput struct {
	ID int `json:"id" minimum:"1"`
}

func deleteNote(_ *sdk.Call, q idInput) (string, error) {
	var notes []note
	if err := loadJSON(notesFile, &notes); err != nil {
		return "", err
	}
	kept := slices.DeleteFunc(slices.Clone(notes), func(n note) bool { return n.ID == q.ID })
	if len(kept) == len(notes) {
		return fmt.Sprintf("No note with id %d.", q.ID), nil
	}
	return fmt.Sprintf("Deleted note %d.", q.ID), saveJSON(notesFile, kept)
}

type manageInput struct {
	Action string `json:"action" enum:"ADD,UPDATE,DELETE"`
	ID     int    `json:"id" default:"0"`
	Text   string `json:"text" default:""`
}

func manageNotes(c *sdk.Call, q manageInput) (string, error) {
	switch q.Action {
	case "ADD":
		return addNote(c, textInput{q.Text})
	case "DELETE":
		return deleteNote(c, idInput{q.ID})
	}
	var notes []note
	if err := loadJSON(notesFile, &notes); err != nil {
		return "", err
	}
	for i := range notes {
		if notes[i].ID == q.ID {
			notes[i].Text = q.Text
		}
	}
	return "Updated.", saveJSON(notesFile, notes)
}

type proxyInput struct {
	Tool      string          `json:"tool" enum:"add,delete"`
	Arguments json.RawMessage `json:"arguments"`
}

// callTool hands on to whatever is asked for: its own name says nothing.
func callTool(c *sdk.Call, q proxyInput) (string, error) {
	d := json.NewDecoder(strings.NewReader(string(q.Arguments)))
	switch q.Tool {
	case "add":
		var in textInput
		if err := d.Decode(&in); err != nil {
			return "", err
		}
		return addNote(c, in)
	default:
		var in idInput
		if err := d.Decode(&in); err != nil {
			return "", err
		}
		return deleteNote(c, in)
	}
}
