package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/courier"
)

// sender is a shell whose configuration has the package search-index, with a file
// for its messages.
type sender struct {
	*shell
	config, file string
}

func newSender(t *testing.T) *sender {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	must(t, guests.Extract(dir))
	s := &sender{newShell(t), filepath.Join(dir, "sandboxd.yaml"), filepath.Join(dir, "mail", "sent.jsonl")}
	must(t, os.Mkdir(filepath.Dir(s.file), 0o700))
	must(t, os.WriteFile(s.config, fmt.Appendf(nil, "packages:\n  - source: guests/search-index\n    outbox: {mail.example.com: {file: mail/sent.jsonl}}\n"), 0o600))
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send is the command line of a call that sends an invoice.
func (s *sender) send(invoice string, flags ...string) []string {
	args := []string{
		"--config", s.config, "call", "-p", filepath.Join(filepath.Dir(s.config), "guests", "search-index"), "send_invoice_email",
		fmt.Sprintf(`{"to": "a@example.com", "invoice": %q}`, invoice),
	}
	return append(args, flags...)
}

// sent returns the subjects of the messages in the file.
func (s *sender) sent() (subjects []string) {
	s.t.Helper()
	text, err := os.ReadFile(s.file)
	if os.IsNotExist(err) {
		return nil
	}
	must(s.t, err)
	for line := range bytes.Lines(text) {
		var l courier.Line
		must(s.t, json.Unmarshal(line, &l))
		var m struct{ Subject string }
		must(s.t, json.Unmarshal(l.Body, &m))
		subjects = append(subjects, m.Subject)
	}
	return subjects
}

// eventually waits until so many messages were delivered.
func (s *sender) eventually(n int) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); len(s.sent()) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d messages delivered, want %d", len(s.sent()), n)
		}
	}
}

// A call delivers what it sent before it ends, once however often it is made; a
// dry run and a call without a file for the host deliver nothing.
func TestCallDelivers(t *testing.T) {
	s := newSender(t)
	if code, _, diag := s.run(s.send("1", "--dry-run")...); code != 0 || s.sent() != nil {
		t.Errorf("dry run: status %d, %q, sent %q", code, diag, s.sent())
	}
	for range 2 {
		if code, _, diag := s.run(s.send("1")...); code != 0 || fmt.Sprint(s.sent()) != "[Invoice 1]" {
			t.Errorf("status %d, %q, sent %q", code, diag, s.sent())
		}
	}
	s.config = filepath.Join(filepath.Dir(s.config), "without.yaml")
	must(t, os.WriteFile(s.config, []byte("packages: [{source: guests/search-index}]\n"), 0o600))
	if _, _, diag := s.run(s.send("2")...); len(s.sent()) != 1 {
		t.Errorf("nobody was named to deliver to: %q, sent %q", diag, s.sent())
	}
}

// What one process could not deliver the next one does: a daemon, which also
// delivers what other processes send while it runs.
func TestDaemonDeliversForOthers(t *testing.T) {
	s := newSender(t)
	must(t, os.Mkdir(s.file, 0o700))
	code, _, diag := s.run(s.send("early")...)
	if code != 0 || !strings.Contains(diag, "message is not delivered yet") || !strings.Contains(diag, "sent.jsonl") {
		t.Errorf("a folder in place of the file: status %d, %q", code, diag)
	}
	must(t, os.Remove(s.file))
	url, stop := s.daemon("--config", s.config)
	s.eventually(1)
	const calls = 4
	var work sync.WaitGroup
	for i := range calls {
		work.Go(func() {
			if out, err := s.program(s.send(fmt.Sprint(i))...).CombinedOutput(); err != nil {
				t.Errorf("call: %v, %s", err, out)
			}
		})
	}
	work.Wait()
	s.eventually(1 + calls)
	if body := scrape(t, url); !strings.Contains(body, "sandboxd_outbox_messages 0\n") && !strings.Contains(body, "sandboxd_outbox_messages 1\n") {
		t.Errorf("no backlog in the metrics: %s", body)
	}
	stop()
	seen := map[string]int{}
	for _, subject := range s.sent() {
		seen[subject]++
	}
	if len(seen) != 1+calls || len(s.sent()) != len(seen) {
		t.Errorf("delivered %v, want each of %d once", seen, 1+calls)
	}
}
