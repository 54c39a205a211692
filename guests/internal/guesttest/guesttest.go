// Package guesttest helps the tests of the bundled guests, which run natively.
package guesttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

var update = flag.Bool("update", false, "rewrite the tools in tool.yaml")

// Result is what a tool answered.
type Result struct {
	Text       string
	Structured json.RawMessage
	IsError    bool
}

// Call calls a registered tool.
func Call(t *testing.T, tool, arguments string) Result {
	t.Helper()
	req := fmt.Sprintf(`{"tool":%q,"arguments":%s,"context":{"callId":"test"}}`, tool, arguments)
	var r struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(sdk.Run([]byte(req)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%s: got %d blocks of content, want 1", tool, len(r.Content))
	}
	return Result{r.Content[0].Text, r.StructuredContent, r.IsError}
}

// Text calls a registered tool, which must not answer with an error, and
// returns its text.
func Text(t *testing.T, tool, arguments string) string {
	t.Helper()
	r := Call(t, tool, arguments)
	if r.IsError {
		t.Fatalf("%s %s: %s", tool, arguments, r.Text)
	}
	return r.Text
}

// Manifest checks that the tool.yaml of the package under test ends with the
// tools that the package registers, or lists none where it is a reactor, which
// describes itself. With -update it rewrites the list.
func Manifest(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("tool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	head, tools, listed := strings.Cut(string(text), "\ntools:\n")
	if strings.Contains(head, "\nabi: reactor\n") {
		if listed {
			t.Error("tool.yaml lists tools of a reactor that describes itself")
		}
		return
	}
	want := toolsSection(t)
	if *update {
		all := strings.TrimRight(head, "\n") + "\ntools:\n" + want
		if err := os.WriteFile("tool.yaml", []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tools != want {
		t.Error("tool.yaml does not list the registered tools; run the test with -update")
	}
}

func toolsSection(t *testing.T) string {
	t.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(sdk.Describe(), &list); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, tool := range list.Tools {
		writeTool(t, &b, tool)
	}
	return b.String()
}

// writeTool writes one tool, a field a line; JSON is YAML.
func writeTool(t *testing.T, b *bytes.Buffer, tool json.RawMessage) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(tool))
	lead := "  - "
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if name == "name" {
			v = bytes.Trim(v, `"`)
		}
		fmt.Fprintf(b, "%s%s: %s\n", lead, name, v)
		lead = "    "
	}
}
