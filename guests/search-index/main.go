// Command search-index keeps small search indexes, one JSON file each. Its
// tools declare their hints as real servers do: some in full, some in part,
// one not at all.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

func init() {
	sdk.Register(
		sdk.Tool(
			"list_indexes", listIndexes,
			sdk.Description("Lists the indexes with their state and number of documents."),
			sdk.ReadOnly(true),
		),
		sdk.Tool(
			"wipe_index", wipeIndex,
			sdk.Description("Drops all documents of an index and marks it for rebuilding. Refuses while it is rebuilding."),
			sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(false), sdk.OpenWorld(false),
		),
		sdk.Tool(
			"reindex_document", reindexDocument,
			sdk.Description("Adds the terms of a stored document that the index does not have yet."),
			sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(true),
		),
		sdk.Tool(
			"append_note", appendNote,
			sdk.Description("Adds a remark to an index."),
			sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(false),
		),
		sdk.Tool(
			"purge_tenant", purgeTenant,
			sdk.Description("Deletes all indexes of a tenant."),
		),
		sdk.Tool(
			"send_invoice_email", sendInvoiceEmail,
			sdk.Description("Sends an invoice by e-mail."),
			sdk.OpenWorld(true),
		),
	)
}

func main() { sdk.Main() }

type summary struct {
	Indexes []indexSummary `json:"indexes"`
}

type indexSummary struct {
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	State     string `json:"state"`
	Documents int    `json:"documents"`
}

func listIndexes(*sdk.Call, struct{}) (summary, error) {
	names, err := names()
	if err != nil {
		return summary{}, err
	}
	s := summary{Indexes: []indexSummary{}}
	for _, n := range names {
		x, err := load(n)
		if err != nil {
			return summary{}, err
		}
		s.Indexes = append(s.Indexes, indexSummary{n, x.Tenant, x.State, len(x.Documents)})
	}
	return s, nil
}

type indexInput struct {
	Index string `json:"index" description:"the name of an index"`
}

func wipeIndex(_ *sdk.Call, in indexInput) (string, error) {
	x, err := load(in.Index)
	if err != nil {
		return "", err
	}
	if x.State == rebuilding {
		return "", fmt.Errorf("index %s: already rebuilding", in.Index)
	}
	n := len(x.Documents)
	x.State, x.Documents = rebuilding, []document{}
	return fmt.Sprintf("Wiped %d documents.", n), save(in.Index, x)
}

type documentInput struct {
	Index      string `json:"index" description:"the name of an index"`
	DocumentID string `json:"document_id" description:"the id of a document in it"`
}

func reindexDocument(_ *sdk.Call, in documentInput) (string, error) {
	x, err := load(in.Index)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(x.Documents, func(d document) bool { return d.ID == in.DocumentID })
	if i < 0 {
		return "", fmt.Errorf("document %s: not in index %s", in.DocumentID, in.Index)
	}
	added := x.Documents[i].index()
	if added == 0 {
		return "Nothing to add.", nil
	}
	return fmt.Sprintf("Added %d terms.", added), save(in.Index, x)
}

type noteInput struct {
	Index string `json:"index" description:"the name of an index"`
	Note  string `json:"note" minLength:"1"`
}

func appendNote(_ *sdk.Call, in noteInput) (string, error) {
	x, err := load(in.Index)
	if err != nil {
		return "", err
	}
	x.Notes = append(x.Notes, in.Note)
	return fmt.Sprintf("%d notes.", len(x.Notes)), save(in.Index, x)
}

type tenantInput struct {
	Tenant string `json:"tenant"`
}

func purgeTenant(_ *sdk.Call, in tenantInput) (string, error) {
	names, err := names()
	if err != nil {
		return "", err
	}
	purged := 0
	for _, n := range names {
		x, err := load(n)
		if err != nil {
			return "", err
		}
		if x.Tenant != in.Tenant {
			continue
		}
		if err := remove(n); err != nil {
			return "", err
		}
		purged++
	}
	return fmt.Sprintf("Purged %d indexes.", purged), nil
}

type invoiceInput struct {
	To      string `json:"to" description:"an e-mail address" minLength:"1"`
	Invoice string `json:"invoice" description:"the invoice's number" minLength:"1"`
}

// mailHost is who delivers e-mail.
const mailHost = "mail.example.com"

// sendInvoiceEmail hands the e-mail to the outbox, which releases it after the
// commit: it cannot be taken back. The key names the invoice and who gets it, so
// that one is not sent twice to one address, in whatever call.
func sendInvoiceEmail(_ *sdk.Call, in invoiceInput) (string, error) {
	body, err := json.Marshal(map[string]string{"to": in.To, "subject": "Invoice " + in.Invoice})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	err = outbox.Send(outbox.Message{
		Host: mailHost, Method: "POST", Path: "/v1/messages", ContentType: "application/json", Body: body,
		Key: "invoice-" + hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return "", fmt.Errorf("invoice %s to %s: %w", in.Invoice, in.To, err)
	}
	return fmt.Sprintf("Invoice %s is on its way to %s.", in.Invoice, in.To), nil
}
