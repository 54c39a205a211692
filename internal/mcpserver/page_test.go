package mcpserver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/mcpserver"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// TestTransactionsPage sends each call of docs/transactions.md to guests/notes, in
// order and in both eras, and looks for what the page says is answered.
func TestTransactionsPage(t *testing.T) {
	d := newDesk(t, runtime.Binding{})
	cache, err := deskCache()
	if err != nil {
		t.Fatal(err)
	}
	builder, err := build.New(build.Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	src, err := tool.Load(filepath.Join("..", "..", "guests", "notes"), builder.Func(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	notes, err := d.engine.Load(t.Context(), src, runtime.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.server.Replace(mcpserver.Packages(notes), allHostTools...); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "transactions.md"))
	if err != nil {
		t.Fatal(err)
	}
	calls, answers := messages(string(page), "call"), messages(string(page), "answer")
	if len(calls) < 6 || len(calls) != len(answers) {
		t.Fatalf("%d calls, %d answers", len(calls), len(answers))
	}
	inBothEras(t, d, func(t *testing.T, u *user) {
		ids := map[string]string{} // what the page calls them
		for i, text := range calls {
			for name, id := range ids {
				text = strings.ReplaceAll(text, name, id)
			}
			var p mcp.CallToolParams
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatal(err)
			}
			res, err := u.session.CallTool(t.Context(), &p)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			b, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(answers[i]), &want); err != nil {
				t.Fatal(err)
			}
			if !holds(got, want, ids) {
				t.Errorf("%s\nis answered %s\nwant %s", text, b, answers[i])
			}
		}
	})
}

// messages returns the JSON blocks of a page with that word after the language.
func messages(page, word string) []string {
	var all []string
	for rest := page; ; {
		_, after, ok := strings.Cut(rest, "```json "+word+"\n")
		if !ok {
			return all
		}
		text, after, _ := strings.Cut(after, "```")
		all, rest = append(all, text), after
	}
}

// holds reports whether got has all of want. A text that begins with CALL- is
// whatever it is the first time; one that ends in … is the beginning of one.
func holds(got, want any, ids map[string]string) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for key, v := range w {
			ok = ok && holds(g[key], v, ids)
		}
		return ok
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			ok = ok && holds(g[i], w[i], ids)
		}
		return ok
	case string:
		g, ok := got.(string)
		if strings.HasPrefix(w, "CALL-") {
			if ids[w] == "" {
				ids[w] = g
			}
			return ok && g == ids[w]
		}
		if head, cut := strings.CutSuffix(w, "…"); cut {
			return ok && strings.HasPrefix(g, head)
		}
		return ok && g == w
	}
	return got == want
}
