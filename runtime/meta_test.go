package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/tool"
)

func TestGuestKey(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "progressToken": true, "a.b-c_d": true, "com.example/own": true, "com.example/": true, "mcp/x": true,
		"com.example.mcp/x": true, "dev.sandboxd.other/x": true, "dev.sandboxd": true, "a1-b.c/x": true,
		"dev.sandboxd/call": false, "DEV.Sandboxd/Violation": false, "dev.sandboxd/": false,
		"dev.\u017fandboxd/call": false, "dev.sandboxd/\u212a": false, "io.modelcontextprotocol/serverInfo": false,
		"io.ModelContextProtocol/x": false, "dev.mcp/x": false, "com.mcp.tools/x": false, "io.modelconte\u017ftprotocol/x": false,
		"": false, "/": false, "/a": false, "a/b/c": false, "1a/b": false, "a-/b": false, ".a": false, "a_": false, "a b": false, "a\n": false, "\u00e9": false,
	} {
		if got := guestKey(key); got != want {
			t.Errorf("%q: %t", key, got)
		}
	}
}

// FuzzGuestKey: no key that a guest may set is one of the project's for a reader
// that folds case.
func FuzzGuestKey(f *testing.F) {
	f.Add("dev.\u017fandboxd/call")
	f.Add("dev.sandboxd/call")
	f.Fuzz(func(t *testing.T, key string) {
		if !guestKey(key) {
			return
		}
		for _, own := range []string{"call", "violation", "enforcement"} {
			if strings.EqualFold(key, MetaPrefix+own) {
				t.Errorf("%q", key)
			}
		}
	})
}

// TestMetaOfAnswers is bounded, and is written again.
func TestMetaOfAnswers(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat("a", i+1) + `":0,"`)
		}
		return `{"` + strings.TrimSuffix(b.String(), `,"`) + `}`
	}
	for name, c := range map[string]struct {
		in, want string // empty: an error
		dropped  int
	}{
		"as it is":       {`{"a":{"b":[1,1e999]}}`, `{"a":{"b":[1,1e999]}}`, 0},
		"reserved":       {`{"a":1,"dev.\u017fandboxd/call":1,"io.mcp/x":2}`, `{"a":1}`, 2},
		"half surrogate": {`{"a":"\ud800"}`, "{\"a\":\"\uFFFD\"}", 0},
		"twice within":   {`{"a":{"b":1,"b":2}}`, `{"a":{"b":2}}`, 0},
		"most keys":      {keys(maxMetaKeys), "", 0},
		"too many keys":  {keys(maxMetaKeys + 1), "", 0},
		"too long":       {`{"a":"` + strings.Repeat("x", maxMetaBytes) + `"}`, "", 0},
		"no object":      {`[]`, "", 0},
	} {
		for where, answer := range map[string]string{
			"result": `{"content":[],"_meta":` + c.in + `}`,
			"block":  `{"content":[{"type":"text","text":"","_meta":` + c.in + `}]}`,
			"within": `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"","_meta":` + c.in + `}}]}`,
		} {
			out, dropped, err := parseOutput(context.Background(), []byte(answer), 1<<20)
			if wrong := c.want == "" && name != "most keys"; wrong || err != nil {
				if !wrong || err == nil {
					t.Errorf("%s of %s: error %v", name, where, err)
				}
				continue
			}
			got, err := json.Marshal(out.Meta)
			if err != nil {
				t.Fatal(err)
			}
			if where != "result" {
				got = out.Content[0]
			}
			if dropped != c.dropped || c.want != "" && !strings.Contains(string(got), c.want) {
				t.Errorf("%s of %s: %s, dropped %d", name, where, got, dropped)
			}
		}
	}
}

// answers calls a tool of those schemas whose guest makes a file and answers so.
func answers(t *testing.T, answer, outputSchema string) *Result {
	t.Helper()
	p := pack(command("new", answer, w.Seq(open("new", oflagCreate, rightWrite), write(1, int32(len(answer))))), tool.Command, capabilities.Claim{})
	if outputSchema != "" {
		p.Manifest.Tools[0].OutputSchema = []byte(outputSchema)
	}
	loaded, dir := load(t, newEngine(t, Observer{}), p)
	r := loaded.Call(context.Background(), Request{Tool: "t"})
	if r.Outcome != OK {
		untouched(t, dir)
	}
	return r
}

// TestStructuredContentIsStrict with a schema and without: what readers of JSON
// read differently is no result, and nothing of the call is kept.
func TestStructuredContentIsStrict(t *testing.T) {
	for name, c := range map[string]struct {
		in, schema, want string
		outcome          Outcome
	}{
		"canonical":         {in: `{ "a" : "\u00e9\/" }`, want: `{"a":"é/"}`, outcome: OK},
		"with a schema":     {in: `{ "a" : 1 }`, schema: `{"type":"object"}`, want: `{"a":1}`, outcome: OK},
		"a key twice":       {in: `{"a":1,"a":2}`, outcome: ToolError},
		"half a surrogate":  {in: `{"a":"\ud800"}`, outcome: ToolError},
		"no UTF-8":          {in: "{\"a\":\"\xff\"}", outcome: ToolError},
		"number of no size": {in: `{"a":1e999}`, outcome: ToolError},
		"no object":         {in: `"str"`, want: `"str"`, outcome: OK},
		"none":              {in: `null`, want: ``, outcome: OK},
	} {
		r := answers(t, `{"content":[],"structuredContent":`+c.in+`}`, c.schema)
		if r.Outcome != c.outcome || string(r.Output.StructuredContent) != c.want {
			t.Errorf("%s: %s (%v), %s", name, r.Outcome, r.Err, r.Output.StructuredContent)
		}
		if r.Outcome == ToolError && textOf(t, r) != "t did not end well: its answer is not a tool result." {
			t.Errorf("%s: said %q", name, textOf(t, r))
		}
	}
	r := answers(t, `{"content":[],"isError":true,"structuredContent":{"a":1,"a":2}}`, "")
	if r.Outcome != ToolError || len(r.Output.StructuredContent) > 0 {
		t.Errorf("of an error: %s, %s", r.Outcome, r.Output.StructuredContent)
	}
}
