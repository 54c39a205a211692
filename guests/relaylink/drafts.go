package main

import (
	"fmt"
	"strconv"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

func init() {
	sdk.Register(
		writer("draft_package", "Creates a draft. Nothing is sent before confirm_send.", hints{}, draftPackage),
		writer("confirm_send", "Sends a draft. A draft that was sent is not sent again.",
			hints{destructive: true, open: true}, confirmSend, sdk.Title("Send package (irreversible)")),
		writer("cancel_draft", "Cancels a draft that was not sent.", hints{destructive: true, idempotent: true}, cancelDraft),
		reader("list_drafts", "Lists drafts with their state.", listDrafts),
		reader("usage_status", "Tells how many drafts were made; asking is not counted.", usageStatus),
	)
}

const drafts = "drafts.json"

type packageInput struct {
	To      string `json:"to" description:"an e-mail address" minLength:"3"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// draftPackage adds a row and counts it: a key that is incremented only grows.
func draftPackage(_ *sdk.Call, q packageInput) (string, error) {
	list, err := load(drafts)
	if err != nil {
		return "", err
	}
	id := nextID(list, "d")
	r, err := record{}.with(map[string]string{"id": id, "to": q.To, "subject": q.Subject, "body": q.Body, "state": "draft"})
	if err != nil {
		return "", err
	}
	if _, err := kv.Increment("usage/drafts", 1); err != nil {
		return "", err
	}
	return "Draft " + id + ".", save(drafts, append(list, r))
}

type idInput struct {
	ID string `json:"id" minLength:"1" maxLength:"40"`
}

// confirmSend declares that it destroys, because what is sent cannot be taken
// back: marking the draft needs no relaxation. It does not declare that a second
// call changes nothing, although the key of the message sees to that.
func confirmSend(_ *sdk.Call, q idInput) (string, error) {
	list, err := load(drafts)
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	switch {
	case r == nil:
		return "", missing("draft", q.ID)
	case r.text("state") == "cancelled":
		return "", fmt.Errorf("draft %s: cancelled", q.ID)
	}
	if err := mail("package-"+q.ID, r.text("to"), r.text("subject"), r.text("body")); err != nil {
		return "", fmt.Errorf("draft %s: %w", q.ID, err)
	}
	return move(drafts, list, r, "sent", "Sent draft "+q.ID+".")
}

// move gives a record of the list its new state.
func move(name string, list []record, r record, state, answer string) (string, error) {
	if r.text("state") == state {
		return answer, nil
	}
	if _, err := r.with(map[string]string{"state": state}); err != nil {
		return "", err
	}
	return answer, save(name, list)
}

func cancelDraft(_ *sdk.Call, q idInput) (string, error) {
	list, err := load(drafts)
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	switch {
	case r == nil:
		return "There is no draft " + q.ID + ".", nil
	case r.text("state") == "sent":
		return "", fmt.Errorf("draft %s: sent", q.ID)
	}
	return move(drafts, list, r, "cancelled", "Cancelled draft "+q.ID+".")
}

type rows struct {
	Rows []record `json:"rows"`
}

// shown returns a file's records as structured content.
func shown(name string) (rows, error) {
	list, err := load(name)
	if list == nil {
		list = []record{}
	}
	return rows{list}, err
}

func listDrafts(*sdk.Call, none) (rows, error) { return shown(drafts) }

type usage struct {
	Drafts int `json:"drafts"`
}

func usageStatus(*sdk.Call, none) (usage, error) {
	b, ok, err := kv.Get("usage/drafts")
	if err != nil || !ok {
		return usage{}, err
	}
	n, err := strconv.Atoi(string(b))
	return usage{n}, err
}
