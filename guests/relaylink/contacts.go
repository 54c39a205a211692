package main

import (
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		reader("list_contacts", "Lists contacts.", func(*sdk.Call, none) (rows, error) { return shown(contacts) }),
		writer("rename_contact", "Sets your own nickname for a contact.", hints{idempotent: true}, renameContact),
		writer("accept_contact", "Accepts a contact who waits for it, and tells them by mail.", hints{open: true}, acceptContact),
	)
}

const contacts = "contacts.json"

type nicknameInput struct {
	idInput
	Nickname string `json:"nickname" minLength:"1" maxLength:"80"`
}

// renameContact replaces a nickname, which is requested as volatile.
func renameContact(_ *sdk.Call, q nicknameInput) (string, error) {
	list, err := load(contacts)
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	if r == nil {
		return "", missing("contact", q.ID)
	}
	if r.text("nickname") == q.Nickname {
		return "Renamed.", nil
	}
	if _, err := r.with(map[string]string{"nickname": q.Nickname}); err != nil {
		return "", err
	}
	return "Renamed.", save(contacts, list)
}

// acceptContact goes from pending to accepted once; it is an error a second time.
func acceptContact(_ *sdk.Call, q idInput) (string, error) {
	list, err := load(contacts)
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	if r == nil {
		return "", missing("contact", q.ID)
	}
	if s := r.text("state"); s != "pending" {
		return "", fmt.Errorf("contact %s: %s and not pending", q.ID, s)
	}
	if err := mail("accepted-"+q.ID, r.text("address"), "Contact accepted", "You can write to each other now."); err != nil {
		return "", fmt.Errorf("contact %s: %w", q.ID, err)
	}
	return move(contacts, list, r, "accepted", "Accepted.")
}
