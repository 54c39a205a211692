package main

import (
	"encoding/json"

	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

// mail hands a message to the outbox. The key names the occasion: it is sent once
// for that, however often it is asked for.
func mail(key, to, subject, body string) error {
	b, err := json.Marshal(struct {
		To      string `json:"to"`
		Subject string `json:"subject"`
		Body    string `json:"body"`
	}{to, subject, body})
	if err != nil {
		return err
	}
	return outbox.Send(outbox.Message{
		Host: "mail.relaylink.example", Path: "/v1/send", ContentType: "application/json", Body: b, Key: key,
	})
}
