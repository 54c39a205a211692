package main

import (
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// Tools that say that they only add, with the operations on keys that only add.
func init() {
	adder := []sdk.Option{sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(false), sdk.OpenWorld(false)}
	sdk.Register(
		sdk.Tool("count_page", countPage, append([]sdk.Option{sdk.Description("Counts a visit of a page.")}, adder...)...),
		sdk.Tool("log_event", logEvent, append([]sdk.Option{sdk.Description("Adds an event to the journal of the day.")}, adder...)...),
		sdk.Tool("show_visits", showVisits, sdk.Description("Tells how often pages were visited."), sdk.ReadOnly(true), sdk.OpenWorld(false)),
	)
}

type visitInput struct {
	Page string `json:"page" enum:"home,about,news"`
}

func countPage(_ *sdk.Call, q visitInput) (string, error) {
	n, err := kv.Increment("visits/"+q.Page, 1)
	return fmt.Sprintf("%d visits.", n), err
}

type eventInput struct {
	Event string `json:"event" minLength:"1" maxLength:"200"`
}

func logEvent(_ *sdk.Call, q eventInput) (string, error) {
	day := time.Now().UTC().Format(time.DateOnly)
	return "Added.", kv.Append("journal/"+day, []byte(q.Event+"\n"))
}

// showVisits scans the keys, which a tool that changes nothing may.
func showVisits(*sdk.Call, none) (string, error) {
	list, err := kv.Scan("visits/", "visits0", 100)
	text := ""
	for _, e := range list {
		text += fmt.Sprintf("%s: %s\n", e.Key[len("visits/"):], e.Value)
	}
	return text, err
}
