package main

import (
	"crypto/rand"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		reader("attachment_list", "Lists attachments.", func(*sdk.Call, none) (rows, error) { return shown(attachments) }),
		writer("attachment_upload_link", "Makes a link to upload a document. With a key that has a link, that one stops working.", hints{}, uploadLink),
	)
}

const attachments = "attachments.json"

type uploadInput struct {
	Name           string `json:"name" minLength:"1"`
	IdempotencyKey string `json:"idempotencyKey" minLength:"1" maxLength:"80"`
}

// uploadLink keeps the row of the link that it replaces and says so in its state,
// by the transition from pending to replaced.
func uploadLink(_ *sdk.Call, q uploadInput) (string, error) {
	list, err := load(attachments)
	if err != nil {
		return "", err
	}
	for _, r := range list {
		if r.text("idempotencyKey") == q.IdempotencyKey && r.text("state") == "pending" {
			if _, err := r.with(map[string]string{"state": "replaced"}); err != nil {
				return "", err
			}
		}
	}
	link := "https://relaylink.example/upload/" + rand.Text()
	r, err := record{}.with(map[string]string{
		"id": nextID(list, "a"), "name": q.Name, "idempotencyKey": q.IdempotencyKey, "link": link, "state": "pending",
	})
	if err != nil {
		return "", err
	}
	return link, save(attachments, append(list, r))
}
