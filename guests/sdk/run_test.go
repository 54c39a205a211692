package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type page struct {
	Offset int `json:"offset" default:"0" minimum:"0" description:"first entry"`
	Limit  int `json:"limit,omitempty" minimum:"1" maximum:"100"`
}

type everything struct {
	page
	Name    string            `json:"name" minLength:"1" maxLength:"8" description:"who"`
	Mode    string            `json:"mode" enum:"fast,careful" default:"fast"`
	Level   int               `json:"level,omitempty" enum:"1,2,3"`
	Ratio   *float64          `json:"ratio"`
	Count   uint8             `json:"count,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	When    *time.Time        `json:"when,omitempty"`
	Blob    []byte            `json:"blob,omitempty"`
	Any     any               `json:"any,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Nested  []nested          `json:"nested,omitempty"`
	Pair    [2]bool           `json:"pair,omitzero"`
	Skipped string            `json:"-"`
	_       string
}

type nested struct {
	Key   string `json:"key"`
	Value int    `json:"value" default:"7"`
}

type report struct {
	Entries []string       `json:"entries"`
	Next    *int           `json:"next"`
	Last    *int           `json:"last,omitempty"`
	Counts  map[string]int `json:"counts"`
	At      time.Time      `json:"at"`
}

// register replaces the registered tools for one test.
func register(t testing.TB, ds ...Definition) {
	t.Helper()
	old := tools
	t.Cleanup(func() { tools = old })
	tools = nil
	Register(ds...)
}

func echo(_ *Call, in everything) (everything, error) { return in, nil }

func TestDescribeGolden(t *testing.T) {
	register(
		t,
		Tool("echo", echo, Title("Echo"), Description("Says it again."), ReadOnly(true), OpenWorld(false)),
		Tool("report", func(*Call, struct{}) (report, error) { return report{}, nil }, Destructive(false), Idempotent(true)),
		Tool("bare", func(*Call, struct{}) (string, error) { return "", nil }),
		Tool("raw", func(*Call, struct{}) (Result, error) { return Result{}, nil }),
	)
	var got bytes.Buffer
	if err := serve([]string{"describe"}, nil, &got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "describe.golden.yaml")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("description differs from %s; got:\n%s", golden, got.Bytes())
	}
}

func TestClientCapabilities(t *testing.T) {
	h := func(*Call, struct{}) (string, error) { return "", nil }
	register(t, Tool("t", h, ClientCapabilities("sampling"), ClientCapabilities("roots")), Tool("plain", h, ClientCapabilities()))
	const want = `{"tools":[{"name":"t","inputSchema":{"type":"object","additionalProperties":false},"clientCapabilities":["sampling","roots"]},` +
		`{"name":"plain","inputSchema":{"type":"object","additionalProperties":false}}]}`
	if got := string(Describe()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, names := range [][]string{{"tasks"}, {"Sampling"}, {""}, {"roots", "roots"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q: no panic", names)
				}
			}()
			Tool("t", h, ClientCapabilities(names...))
		}()
	}
}

type greeting struct {
	Name string `json:"name"`
}

func (g greeting) Text() string { return "hello " + g.Name }

func TestRunResult(t *testing.T) {
	register(
		t,
		Tool("text", func(c *Call, _ struct{}) (string, error) { return "hello " + c.ID, nil }),
		Tool("value", func(*Call, struct{}) (map[string]int, error) { return map[string]int{"n": 1}, nil }),
		Tool("texter", func(*Call, struct{}) (greeting, error) { return greeting{"Ada"}, nil }),
		Tool("full", func(*Call, struct{}) (Result, error) { return Result{IsError: true}, nil }),
		Tool("meta", func(*Call, struct{}) (Result, error) { return Result{Meta: map[string]any{"k": "v"}}, nil }),
		Tool("fails", func(*Call, struct{}) (string, error) { return "", errors.New("no such thing") }),
		Tool("broken", func(*Call, struct{}) (Result, error) { return Result{StructuredContent: func() {}}, nil }),
	)
	for _, c := range []struct{ request, want string }{
		{`{"tool":"text","context":{"callId":"c1"}}`, `{"content":[{"type":"text","text":"hello c1"}]}`},
		{`{"tool":"value","arguments":{}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
		{`{"tool":"texter"}`, `{"content":[{"type":"text","text":"hello Ada"}],"structuredContent":{"name":"Ada"}}`},
		{`{"tool":"full"}`, `{"content":[],"isError":true}`},
		{`{"tool":"meta"}`, `{"content":[],"_meta":{"k":"v"}}`},
		{`{"tool":"fails"}`, `{"content":[{"type":"text","text":"no such thing"}],"isError":true}`},
		{`{"tool":"fails","arguments":{"x":1}}`, `{"content":[{"type":"text","text":"arguments: x is unknown"}],"isError":true}`},
		{`{"tool":"other"}`, `{"content":[{"type":"text","text":"tool \"other\": unknown"}],"isError":true}`},
		{`{`, `{"content":[{"type":"text","text":"request: unexpected end of JSON input"}],"isError":true}`},
		{`{"tool":"broken"}`, `{"content":[{"type":"text","text":"result: json: unsupported type: func()"}],"isError":true}`},
	} {
		if got := string(Run([]byte(c.request))); got != c.want {
			t.Errorf("Run(%s)\n got %s\nwant %s", c.request, got, c.want)
		}
	}
}

func TestServe(t *testing.T) {
	register(t, Tool("text", func(*Call, struct{}) (string, error) { return "hello", nil }))
	var out bytes.Buffer
	if err := serve(nil, strings.NewReader(`{"tool":"text","arguments":{}}`), &out); err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"hello"}]}`; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

func TestPanicPassesThrough(t *testing.T) {
	register(t, Tool("boom", func(*Call, struct{}) (string, error) { panic("boom") }))
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v, want boom", r)
		}
	}()
	Run([]byte(`{"tool":"boom"}`))
}

func TestContentJSON(t *testing.T) {
	for _, c := range []struct {
		content Content
		want    string
	}{
		{Content{Type: "text"}, `{"type":"text","text":""}`},
		{Content{Type: "image", Data: []byte("x"), MIMEType: "image/png"}, `{"type":"image","data":"eA==","mimeType":"image/png"}`},
		{Content{Type: "audio", Data: []byte("x"), MIMEType: "audio/wav", Meta: map[string]any{"k": 1}}, `{"type":"audio","data":"eA==","mimeType":"audio/wav","_meta":{"k":1}}`},
		{Content{Type: "resource_link", URI: "file:///a", Name: "a", Title: "A"}, `{"type":"resource_link","uri":"file:///a","name":"a","title":"A"}`},
		{Content{Type: "resource", Resource: &Resource{URI: "file:///a", MIMEType: "text/plain"}}, `{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":""}}`},
		{Content{Type: "resource", Resource: &Resource{URI: "file:///a", Blob: []byte("x")}}, `{"type":"resource","resource":{"uri":"file:///a","blob":"eA=="}}`},
	} {
		b, err := json.Marshal(c.content)
		if err != nil || string(b) != c.want {
			t.Errorf("got %s, %v; want %s", b, err, c.want)
		}
	}
	for _, c := range []Content{{Type: "video"}, {Type: "resource"}} {
		if _, err := json.Marshal(c); err == nil {
			t.Errorf("%+v was written", c)
		}
	}
}

// TestWarm: no handler runs, and what types do with nothing is no harm.
func TestWarm(t *testing.T) {
	ran := false
	register(t,
		Tool("shy", func(*Call, page) (string, error) { ran = true; return "", nil }),
		Tool("all", func(*Call, page) (report, error) { ran = true; return report{}, nil }))
	tools[0].zero = func() Result { panic("nothing is given") }
	warm()
	if ran {
		t.Error("a handler ran")
	}
}
