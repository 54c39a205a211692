package main

import (
	"crypto/rand"
	"os"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// Tools that claim that a second call changes nothing further.
func init() {
	sdk.Register(
		repeater("log_visit", "Notes that a visitor came.", logVisit),
		repeater("mark_checked", "Marks the report as checked.", markChecked),
		repeater("open_ticket", "Opens a ticket.", openTicket),
	)
}

type visitorInput struct {
	Name string `json:"name" minLength:"1"`
}

// logVisit adds a line a call.
func logVisit(_ *sdk.Call, q visitorInput) (string, error) {
	return "Noted.", appendLine("visitors.txt", q.Name)
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(in(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return err
	}
	return f.Close()
}

// markChecked writes down when it was called.
func markChecked(*sdk.Call, none) (string, error) {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return "Checked.", os.WriteFile(in("checked.txt"), []byte(now+"\n"), 0o644)
}

type subjectInput struct {
	Subject string `json:"subject" minLength:"1"`
}

// openTicket makes a file under a name that is never the same.
func openTicket(_ *sdk.Call, q subjectInput) (string, error) {
	name := "ticket-" + rand.Text() + ".txt"
	return "Opened.", os.WriteFile(in(name), []byte(q.Subject+"\n"), 0o644)
}
