package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk"
)

func fresh(t *testing.T) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "memory.jsonl")
}

func stored(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const ada = `{"name":"Ada","entityType":"person","observations":["wrote notes"]}`

func TestGraph(t *testing.T) {
	fresh(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{"read_graph", `{}`, `{"entities":[],"relations":[]}`},
		{"create_entities", `{"entities":[` + ada + `,{"name":"Engine","entityType":"machine","observations":[]},` + ada + `]}`, `{"entities":[` + ada + `,{"name":"Engine","entityType":"machine","observations":[]}]}`},
		{"create_entities", `{"entities":[` + ada + `]}`, `{"entities":[]}`},
		{"create_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`, `{"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`},
		{"create_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`, `{"relations":[]}`},
		{"add_observations", `{"observations":[{"entityName":"Ada","contents":["wrote notes","was a countess"]}]}`, `{"results":[{"entityName":"Ada","addedObservations":["was a countess"]}]}`},
		{"search_nodes", `{"query":"COUNT"}`, `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote notes","was a countess"]}],"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`},
		{"open_nodes", `{"names":["Engine","Zed"]}`, `{"entities":[{"name":"Engine","entityType":"machine","observations":[]}],"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`},
		{"delete_observations", `{"deletions":[{"entityName":"Ada","observations":["wrote notes"]}]}`, `{"success":true,"message":"Observations deleted successfully"}`},
		{"delete_observations", `{"deletions":[{"entityName":"Ada","observations":["wrote notes"]},{"entityName":"Zed","observations":["a"]}]}`, `{"success":true,"message":"Deleted 0 of 2 observations. Entities not found: Zed"}`},
		{"delete_relations", `{"relations":[{"from":"Ada","to":"Zed","relationType":"knows"}]}`, `{"success":true,"message":"Deleted 0 of 1 relations. The rest matched nothing."}`},
		{"delete_entities", `{"entityNames":["Engine","Zed"]}`, `{"success":true,"message":"Deleted 1 of 2 entities. Not found: Zed"}`},
		{"read_graph", `{}`, `{"entities":[{"name":"Ada","entityType":"person","observations":["was a countess"]}],"relations":[]}`},
		{"delete_entities", `{"entityNames":["Ada"]}`, `{"success":true,"message":"Entities deleted successfully"}`},
	} {
		if got := guesttest.Text(t, c.tool, c.arguments); got != c.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.tool, c.arguments, got, c.want)
		}
	}
	if s := stored(t); s != "" {
		t.Errorf("all was deleted, left %q", s)
	}
}

// Every line and field that this version does not know is there after each kind
// of change, in its place and with its text.
func TestKeepsWhatItDoesNotKnow(t *testing.T) {
	const seed = `{"type":"entity","createdAt":1.50,"name":"Ada","entityType":"person","observations":[ "\ud800", "b" ],"tags":["x"]}
{"type":"note","text":"of a newer version"}

not JSON
{"type":"relation","from":"Ada","to":"Gone","relationType":"misses","weight":2}
{"type":"entity","name":"Half"}
{"type":"entity","Name":"Case","entityType":"person","observations":[]}
{"type":"entity","name":"Null","entityType":"person","observations":[null]}`
	fresh(t)
	if err := os.WriteFile(path, []byte(seed), 0o644); err != nil {
		t.Fatal(err)
	}
	guesttest.Text(t, "create_entities", `{"entities":[{"name":"B","entityType":"person","observations":[]}]}`)
	want := seed + "\n" + `{"type":"entity","name":"B","entityType":"person","observations":[]}` + "\n"
	if got := stored(t); got != want {
		t.Errorf("created:\n%s\nwant:\n%s", got, want)
	}
	guesttest.Text(t, "add_observations", `{"observations":[{"entityName":"Ada","contents":["c","b"]}]}`)
	want = strings.Replace(want, `[ "\ud800", "b" ]`, `["\ud800","b","c"]`, 1)
	if got := stored(t); got != want {
		t.Errorf("observed:\n%s\nwant:\n%s", got, want)
	}
	guesttest.Text(t, "delete_observations", `{"deletions":[{"entityName":"Ada","observations":["b","c"]}]}`)
	want = strings.Replace(want, `["\ud800","b","c"]`, `["\ud800"]`, 1)
	if got := stored(t); got != want {
		t.Errorf("forgot:\n%s\nwant:\n%s", got, want)
	}
	for _, name := range []string{"Half", "Case", "Null"} {
		if r := guesttest.Call(t, "add_observations", `{"observations":[{"entityName":"`+name+`","contents":["c"]}]}`); !r.IsError {
			t.Errorf("%s is shown: %+v", name, r)
		}
	}
	if got := stored(t); got != want {
		t.Errorf("an error changed the file:\n%s", got)
	}
}

func TestErrorsSaveNothing(t *testing.T) {
	fresh(t)
	for _, c := range []struct{ tool, arguments string }{
		{"create_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"describes"}]}`},
		{"add_observations", `{"observations":[{"entityName":"Ada","contents":["a"]}]}`},
	} {
		if r := guesttest.Call(t, c.tool, c.arguments); !r.IsError {
			t.Errorf("%s: got %+v, want an error", c.tool, r)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}

// Nothing but the graph is left in the folder, also where saving fails.
func TestLeavesNoTemporaryFile(t *testing.T) {
	fresh(t)
	guesttest.Text(t, "delete_entities", `{"entityNames":["Ada"]}`)
	if err := os.Remove(path); err != nil { // made although there was nothing to delete
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&file{}).save(); err == nil {
		t.Error("saved over a folder")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// The tools are those of the original, in its order.
func TestHints(t *testing.T) {
	var list struct {
		Tools []struct {
			Name, Title string
			Annotations struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool }
		}
	}
	if err := json.Unmarshal(sdk.Describe(), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Tools {
		a := d.Annotations
		s := d.Title + ":"
		for i, b := range []*bool{a.ReadOnlyHint, a.DestructiveHint, a.IdempotentHint, a.OpenWorldHint} {
			if b == nil {
				t.Fatalf("%s: hint %d is absent", d.Name, i)
			}
			if *b {
				s += " " + []string{"read-only", "destructive", "idempotent", "open"}[i]
			}
		}
		got = append(got, s)
	}
	want := "Create Entities:|Create Relations:|Add Observations:|Delete Entities: destructive idempotent|" +
		"Delete Observations: destructive idempotent|Delete Relations: destructive idempotent|" +
		"Read Graph: read-only idempotent|Search Nodes: read-only idempotent|Open Nodes: read-only idempotent"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
