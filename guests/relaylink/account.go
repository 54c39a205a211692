package main

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		reader("whoami", "Tells whose account this is.", func(*sdk.Call, none) (string, error) { return owner, nil }),
		reader("list_api_keys", "Lists API keys; none can be used from what is shown.", func(*sdk.Call, none) (rows, error) { return shown(apiKeys) }),
		writer("revoke_api_key", "Revokes an API key and tells the account by mail.",
			hints{destructive: true, idempotent: true, open: true}, revokeAPIKey, sdk.Title("Revoke an API key (irreversible)")),
	)
}

const (
	owner   = "ada@example.com"
	apiKeys = "keys.json"
)

// revokeAPIKey deletes the row and mails what it did. A second call finds no row
// and mails nothing.
func revokeAPIKey(_ *sdk.Call, q idInput) (string, error) {
	list, err := load(apiKeys)
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	if r == nil {
		return "There is no key " + q.ID + ".", nil
	}
	if err := mail("revoked-"+q.ID, owner, "API key revoked", r.text("label")); err != nil {
		return "", fmt.Errorf("key %s: %w", q.ID, err)
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(r record) bool { return r.text("id") == q.ID })
	return "Revoked.", save(apiKeys, kept)
}
