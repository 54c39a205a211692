//go:build !wasip1

package main

import (
	"os"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

func TestTools(t *testing.T) {
	root = t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/data/indexes")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, arguments, want string
		isError               bool
	}{
		{"list_indexes", `{}`, `{"indexes":[{"name":"archive","tenant":"acme","state":"rebuilding","documents":0},{"name":"manuals","tenant":"acme","state":"ready","documents":2},{"name":"tickets","tenant":"globex","state":"ready","documents":1}]}`, false},
		{"reindex_document", `{"index":"manuals","document_id":"pump"}`, "Added 3 terms.", false},
		{"reindex_document", `{"index":"manuals","document_id":"pump"}`, "Nothing to add.", false},
		{"reindex_document", `{"index":"manuals","document_id":"x"}`, "document x: not in index manuals", true},
		{"append_note", `{"index":"manuals","note":"a"}`, "1 notes.", false},
		{"append_note", `{"index":"../manuals","note":"a"}`, `index name "../manuals": want a-z, 0-9 and -`, true},
		{"append_note", `{"index":"none","note":"a"}`, "index none: not found", true},
		{"wipe_index", `{"index":"manuals"}`, "Wiped 2 documents.", false},
		{"wipe_index", `{"index":"manuals"}`, "index manuals: already rebuilding", true},
		{"purge_tenant", `{"tenant":"acme"}`, "Purged 2 indexes.", false},
		{"purge_tenant", `{"tenant":"acme"}`, "Purged 0 indexes.", false},
		{"send_invoice_email", `{"to":"a@example.com","invoice":"1"}`, "Invoice 1 is on its way to a@example.com.", false},
	} {
		if r := guesttest.Call(t, c.tool, c.arguments); r.Text != c.want || r.IsError != c.isError {
			t.Errorf("%s %s: got %q, error %v; want %q, %v", c.tool, c.arguments, r.Text, r.IsError, c.want, c.isError)
		}
	}
}

// Each invoice goes to each address once, whatever calls ask for it.
func TestInvoices(t *testing.T) {
	outbox.Reset()
	for _, arguments := range []string{
		`{"to":"a@example.com","invoice":"1"}`, `{"to":"a@example.com","invoice":"1"}`,
		`{"to":"a@example.com","invoice":"2"}`, `{"to":"b@example.com","invoice":"1"}`,
	} {
		guesttest.Text(t, "send_invoice_email", arguments)
	}
	var bodies []string
	for _, m := range outbox.Sent() {
		if m.Host != "mail.example.com" || m.Method != "POST" || m.Path != "/v1/messages" {
			t.Errorf("sent %+v", m)
		}
		bodies = append(bodies, string(m.Body))
	}
	want := []string{
		`{"subject":"Invoice 1","to":"a@example.com"}`, `{"subject":"Invoice 2","to":"a@example.com"}`,
		`{"subject":"Invoice 1","to":"b@example.com"}`,
	}
	if !slices.Equal(bodies, want) {
		t.Errorf("sent %q", bodies)
	}
}

func TestNoIndexes(t *testing.T) {
	root = t.TempDir() + "/none"
	if got := guesttest.Text(t, "list_indexes", `{}`); got != `{"indexes":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestUnknownFieldsAreNotLost(t *testing.T) {
	root = t.TempDir()
	if err := os.WriteFile(file("x"), []byte(`{"tenant":"a","owner":"b"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := guesttest.Call(t, "append_note", `{"index":"x","note":"n"}`); !r.IsError {
		t.Errorf("got %+v, want an error", r)
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
