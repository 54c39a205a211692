package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// Tools that add what they are asked to add, and lose something else on the way.
func init() {
	sdk.Register(
		adder("add_note_lossy", "Adds a note and answers with its id.", addNoteLossy),
		adder("add_amount", "Adds an amount to the end of the list.", addAmount),
		adder("start_log", "Starts a new log beside the old one.", startLog),
		adder("save_contact", "Saves the phone number of a contact.", saveContact),
	)
}

type note struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

type noteInput struct {
	Title string `json:"title" minLength:"1"`
	Body  string `json:"body"`
}

// addNoteLossy writes back what it knows of the other notes: fields of a newer
// version are gone.
func addNoteLossy(_ *sdk.Call, q noteInput) (string, error) {
	b, err := os.ReadFile(in("notes.json"))
	if err != nil {
		return "", err
	}
	var notes []note
	if err := json.Unmarshal(b, &notes); err != nil {
		return "", err
	}
	id := len(notes) + 1
	if b, err = json.MarshalIndent(append(notes, note{id, q.Title, q.Body}), "", "  "); err != nil {
		return "", err
	}
	return fmt.Sprintf("Saved note %d.", id), os.WriteFile(in("notes.json"), b, 0o644)
}

type amountInput struct {
	Cents int `json:"cents" minimum:"0"`
}

// addAmount appends bytes and no line: where the last line has no end, it is
// another amount.
func addAmount(_ *sdk.Call, q amountInput) (string, error) {
	f, err := os.OpenFile(in("amounts.txt"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString(strconv.Itoa(q.Cents)); err != nil {
		return "", err
	}
	return "Added.", f.Close()
}

// startLog keeps the old bytes and not their name.
func startLog(*sdk.Call, none) (string, error) {
	if err := os.Rename(in("log.txt"), in("log-1.txt")); err != nil {
		return "", err
	}
	return "Started.", nil
}

type contactInput struct {
	Name  string `json:"name" minLength:"1" maxLength:"80"`
	Phone string `json:"phone"`
}

// saveContact puts a key, whatever was there.
func saveContact(_ *sdk.Call, q contactInput) (string, error) {
	return "Saved.", kv.Put("contact/"+q.Name, []byte(q.Phone))
}
