//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

func seed(t *testing.T) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/data")); err != nil {
		t.Fatal(err)
	}
	kv.Reset()
	outbox.Reset()
}

// call calls a tool and returns its text, with "error: " before that of an error.
func call(t *testing.T, tool, arguments string) string {
	t.Helper()
	r := guesttest.Call(t, tool, arguments)
	if r.IsError {
		return "error: " + r.Text
	}
	return r.Text
}

func stored(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(in(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDrafts(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"usage_status", `{}`, `{"drafts":0}`},
		{"list_drafts", `{}`, `{"rows":[]}`},
		{"draft_package", `{"to":"a@b","subject":"s","body":"t"}`, "Draft d1."},
		{"draft_package", `{"to":"a@b","subject":"s","body":"t"}`, "Draft d2."},
		{"usage_status", `{}`, `{"drafts":2}`},
		{"confirm_send", `{"id":"d1"}`, "Sent draft d1."},
		{"confirm_send", `{"id":"d1"}`, "Sent draft d1."},
		{"confirm_send", `{"id":"d9"}`, "error: draft d9: not found"},
		{"cancel_draft", `{"id":"d2"}`, "Cancelled draft d2."},
		{"cancel_draft", `{"id":"d2"}`, "Cancelled draft d2."},
		{"cancel_draft", `{"id":"d9"}`, "There is no draft d9."},
		{"cancel_draft", `{"id":"d1"}`, "error: draft d1: sent"},
		{"confirm_send", `{"id":"d2"}`, "error: draft d2: cancelled"},
		{"draft_package", `{"to":"a@b","subject":"s","body":"t"}`, "Draft d3."},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	sent := outbox.Sent()
	if len(sent) != 1 || sent[0].Key != "package-d1" || sent[0].Host != "mail.relaylink.example" || string(sent[0].Body) != `{"to":"a@b","subject":"s","body":"t"}` {
		t.Errorf("sent %+v", sent)
	}
	var got []map[string]string
	if err := json.Unmarshal([]byte(stored(t, drafts)), &got); err != nil || got[0]["state"]+" "+got[1]["state"]+" "+got[2]["state"] != "sent cancelled draft" {
		t.Errorf("drafts %v, %v", got, err)
	}
}

func TestReading(t *testing.T) {
	seed(t)
	const all = `{"rows":[{"from":"ben@example.com","id":"p1","subject":"Offer"},{"from":"cleo@example.com","id":"p2","subject":"Lunch"}]}`
	for _, c := range []struct{ tool, arguments, want string }{
		{"check_inbox", `{}`, all},
		{"get_package", `{"id":"p1"}`, "ben@example.com: Offer\nHere it is."},
		{"get_package", `{"id":"p1"}`, "ben@example.com: Offer\nHere it is."},
		{"get_package", `{"id":"p9"}`, "error: package p9: not found"},
		{"read_forwarded", `{"id":"f1"}`, "See below."},
		{"read_forwarded", `{"id":"f2"}`, "For you."},
		{"read_forwarded", `{"id":"f9"}`, "error: message f9: not found"},
		{"check_inbox", `{}`, all},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	keys, err := kv.Scan("", "", 0)
	if err != nil || len(keys) != 1 || keys[0].Key != "receipt/p1" {
		t.Errorf("keys %v, %v", keys, err)
	}
	if s := stored(t, "forwarded.json"); strings.Contains(s, "unread") || !strings.Contains(s, `"text": "See below."`) {
		t.Errorf("forwarded: %s", s)
	}
}

func TestContacts(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"rename_contact", `{"id":"c1","nickname":"Benny"}`, "Renamed."},
		{"rename_contact", `{"id":"c1","nickname":"Benny"}`, "Renamed."},
		{"rename_contact", `{"id":"c9","nickname":"Benny"}`, "error: contact c9: not found"},
		{"accept_contact", `{"id":"c2"}`, "Accepted."},
		{"accept_contact", `{"id":"c2"}`, "error: contact c2: accepted and not pending"},
		{"accept_contact", `{"id":"c9"}`, "error: contact c9: not found"},
		{"list_contacts", `{}`, `{"rows":[{"address":"ben@example.com","id":"c1","nickname":"Benny","state":"accepted"},{"address":"cleo@example.com","id":"c2","nickname":"Cleo","state":"accepted"}]}`},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	if sent := outbox.Sent(); len(sent) != 1 || sent[0].Key != "accepted-c2" {
		t.Errorf("sent %+v", sent)
	}
}

func TestNotebook(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"notebook_open", `{"page":"plan"}`, `{"text":"# Plan\n1. Hire\n","revision":1}`},
		{"notebook_open", `{"page":"../keys"}`, `error: page "../keys": want a-z, 0-9 and -`},
		{"notebook_save", `{"page":"plan","text":"x"}`, "error: page plan: is there"},
		{"notebook_save", `{"page":"trip","text":"a"}`, "Saved."},
		{"notebook_update", `{"page":"trip","text":"a","revision":1}`, "It has that text."},
		{"notebook_update", `{"page":"trip","text":"b","revision":1}`, "Revision 2."},
		{"notebook_update", `{"page":"trip","text":"c","revision":1}`, "error: page trip: at revision 2, not 1: nothing was replaced"},
		{"notebook_update", `{"page":"trip","text":"c","revision":2}`, "Revision 3."},
		{"notebook_update", `{"page":"none","text":"c","revision":1}`, "error: page none: not found"},
		{"notebook_organize", `{"page":"trip","action":"delete"}`, "Deleted."},
		{"notebook_open", `{"page":"trip"}`, "error: page trip: not found"},
		{"notebook_organize", `{"page":"trip","action":"delete"}`, "error: page trip: there is another one in its place"},
		{"notebook_organize", `{"page":"plan","action":"restore"}`, "error: page plan: there is another one in its place"},
		{"notebook_organize", `{"page":"none","action":"restore"}`, "error: page none: not found"},
		{"notebook_organize", `{"page":"trip","action":"restore"}`, "Restored."},
		{"notebook_open", `{"page":"trip"}`, `{"text":"c","revision":3}`},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	if got := stored(t, "history/trip.1.md") + stored(t, "history/trip.2.md"); got != "ab" {
		t.Errorf("history %q", got)
	}
}

func TestMemory(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"memory_add", `{"text":"plums"}`, "Memory 1."},
		{"memory_add", `{"text":"pears","replaces":1}`, "Memory 2."},
		{"memory_add", `{"text":"figs","replaces":1}`, "error: memory 1: not found"},
		{"memory_search", `{"text":""}`, "[2] pears\n"},
		{"memory_forget", `{"id":2}`, "It is gone."},
		{"memory_forget", `{"id":2}`, "It is gone."},
		{"memory_add", `{"text":"figs"}`, "Memory 3."},
		{"memory_search", `{"text":"ig"}`, "[3] figs\n"},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
}

func TestUploadLinks(t *testing.T) {
	seed(t)
	const uploaded = `[{"id":"a1","idempotencyKey":"k","state":"uploaded"}]`
	if err := os.WriteFile(in(attachments), []byte(uploaded), 0o644); err != nil {
		t.Fatal(err)
	}
	links := map[string]bool{}
	for _, key := range []string{"k", "k", "other"} {
		links[call(t, "attachment_upload_link", `{"name":"a","idempotencyKey":"`+key+`"}`)] = true
	}
	states := regexp.MustCompile(`"state":"(\w+)"`).FindAllStringSubmatch(call(t, "attachment_list", `{}`), -1)
	if got := fmt.Sprint(states); len(links) != 3 || got != `[["state":"uploaded" uploaded] ["state":"replaced" replaced] ["state":"pending" pending] ["state":"pending" pending]]` {
		t.Errorf("%d links, states %s", len(links), got)
	}
}

func TestAccount(t *testing.T) {
	seed(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"whoami", `{}`, "ada@example.com"},
		{"revoke_api_key", `{"id":"k1"}`, "Revoked."},
		{"revoke_api_key", `{"id":"k1"}`, "There is no key k1."},
		{"list_api_keys", `{}`, `{"rows":[{"id":"k2","label":"old phone"}]}`},
	} {
		if got := call(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
	if sent := outbox.Sent(); len(sent) != 1 || sent[0].Key != "revoked-k1" {
		t.Errorf("sent %+v", sent)
	}
}

// Fields of another version are in the file after each change of it.
func TestUnknownFieldsSurvive(t *testing.T) {
	for _, c := range []struct{ file, tool, arguments string }{
		{"forwarded.json", "read_forwarded", `{"id":"x1"}`},
		{contacts, "accept_contact", `{"id":"x1"}`},
		{apiKeys, "revoke_api_key", `{"id":"x2"}`},
		{attachments, "attachment_upload_link", `{"name":"a","idempotencyKey":"k"}`},
		{drafts, "draft_package", `{"to":"a@b","subject":"","body":""}`},
	} {
		seed(t)
		text := `[{"id":"x1","state":"pending","idempotencyKey":"k","more":{"n":1.50}},{"id":"x2","state":"pending"}]`
		if err := os.WriteFile(in(c.file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		guesttest.Text(t, c.tool, c.arguments)
		if s := strings.Join(strings.Fields(stored(t, c.file)), ""); !strings.Contains(s, `"more":{"n":1.50}`) || s == text {
			t.Errorf("%s: %s", c.tool, s)
		}
	}
}

// What the tools declare is what the public server's do, where that is known.
func TestHints(t *testing.T) {
	var list struct {
		Tools []struct {
			Name        string
			Annotations map[string]bool
		}
	}
	if err := json.Unmarshal(sdk.Describe(), &list); err != nil {
		t.Fatal(err)
	}
	additive := map[string]bool{"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}
	want := map[string]map[string]bool{
		"draft_package":          {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false},
		"confirm_send":           {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true},
		"cancel_draft":           {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false},
		"rename_contact":         {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
		"accept_contact":         {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true},
		"attachment_upload_link": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false},
		"memory_add":             {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false},
		"memory_forget":          {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false},
		"revoke_api_key":         {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
		"get_package":            additive, "read_forwarded": additive,
		"notebook_save": additive, "notebook_update": additive, "notebook_organize": additive,
	}
	for _, d := range list.Tools {
		if d.Annotations["readOnlyHint"] {
			want[d.Name] = map[string]bool{"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}
		}
		if want[d.Name] == nil {
			t.Errorf("%s: not expected", d.Name)
		}
		for hint, v := range want[d.Name] {
			if got, ok := d.Annotations[hint]; !ok || got != v {
				t.Errorf("%s: %s is %v, %v", d.Name, hint, got, ok)
			}
		}
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
