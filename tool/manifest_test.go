package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// full has every field of the format but clientCapabilities, which is younger
// than the digests that were approved.
const full = `# a comment
name: notes
version: 1.0.0
module: notes.wasm
abi: command
tools:
  - name: list_notes
    title: List notes
    description: Lists the notes.
    inputSchema: {type: object}
    outputSchema: {type: object, properties: {notes: {type: array, items: {type: string}}}}
    annotations: {readOnlyHint: true, openWorldHint: false}
  - name: add_note
    inputSchema:
      type: object
      properties:
        text: {type: string, maxLength: 100}
        idempotency_key: {type: string}
      required: [text]
    annotations:
      title: Add a note
      destructiveHint: false
      idempotentHint: true
    idempotencyKeyArgument: idempotency_key
requests:
  volumes: [{name: data, path: /data, access: write}, {name: ref, path: /ref}]
  kv: true
  sql: [{name: main}]
  http: [{host: api.example.com, methods: [GET], paths: [/v1/*], secret: API_TOKEN}]
  services: [orders-db]
  outbox: [{host: "hooks.example.com:8443"}]
  env: [TZ]
  sessionScratch: 1MiB
  session: true
  setup: true
relaxations:
  volatile: ["/data/notes.json#/next_id"]
  history: [{of: /data/book.md, under: /data/history}]
  transitions: [{at: "/data/c.json#/*/status", from: pending, to: accepted}]
  recoverable: 30d
limits: {memory: 128MiB, timeout: 1m30s, output: 65536, fuel: 7, writes: 1GiB, files: 10}
warmup: {tool: list_notes, arguments: {b: 1, a: [true, null]}}
labels: {data: private}
`

func TestParseManifest(t *testing.T) {
	m, err := ParseManifest("tool.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "full.golden", append(got, '\n'))
}

const small = `
name: a
module: a.wasm
tools: [{name: t, inputSchema: {type: object}}]
`

func TestManifestDefaults(t *testing.T) {
	m, err := ParseManifest("tool.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := Limits{Memory: 64 << 20, Timeout: 5 * time.Second, Output: 1 << 20, Writes: 64 << 20, Files: 1000}
	if m.Limits != want {
		t.Errorf("limits %+v, want %+v", m.Limits, want)
	}
	if m.ABI != Command || m.Tools[0].Claim != (capabilities.Claim{}) || len(m.Warnings) != 0 {
		t.Errorf("manifest %+v", m)
	}
}

func TestManifestWarnsOfContradiction(t *testing.T) {
	doc := strings.Replace(small, "}}]", "}, annotations: {readOnlyHint: true, destructiveHint: true}}]", 1)
	m, err := ParseManifest("tool.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Warnings) != 1 || !m.Tools[0].Claim.Effective().ReadOnly {
		t.Errorf("warnings %q", m.Warnings)
	}
}

func TestManifestNotSupported(t *testing.T) {
	for _, abi := range []string{"mcp", "extism"} {
		_, err := ParseManifest("tool.yaml", []byte("name: a\nmodule: a.wasm\nabi: "+abi+"\n"))
		var me *ManifestError
		if !errors.Is(err, ErrNotSupported) || !errors.As(err, &me) || me.Line != 3 {
			t.Errorf("abi %s: %v", abi, err)
		}
	}
	if _, err := ParseManifest("tool.yaml", []byte("name: a\nmodule: a.wasm\nabi: reactor\n")); err != nil {
		t.Errorf("a reactor may describe itself: %v", err)
	}
}

// TestManifestError changes one thing in a manifest that is right, and checks
// which field is named and in which line.
func TestManifestError(t *testing.T) {
	for _, tt := range manifestErrors {
		t.Run(tt.field+" "+tt.with, func(t *testing.T) {
			if tt.old != "" && strings.Count(full, tt.old) == 0 {
				t.Fatalf("%q is not in the manifest", tt.old)
			}
			doc := strings.Replace(full, tt.old, tt.with, 1)
			m, err := ParseManifest("d/tool.yaml", []byte(doc))
			if err == nil {
				t.Fatalf("accepted: %+v", m)
			}
			var me *ManifestError
			if !errors.As(err, &me) {
				t.Fatalf("error is a %T", err)
			}
			if me.Field != tt.field || me.Line == 0 || me.Column == 0 || me.File != "d/tool.yaml" {
				t.Errorf("field %q at %d:%d, want %q: %v", me.Field, me.Line, me.Column, tt.field, err)
			}
			if strings.ContainsAny(err.Error(), "\n\r\x1b") || me.Problem == "" {
				t.Errorf("not one line: %q", err)
			}
		})
	}
}

var manifestErrors = []struct{ old, with, field string }{
	{"name: notes", "nome: notes", "nome"},
	{"name: notes", "Name: notes", "Name"},
	{"name: notes", "name: Notes", "name"},
	{"name: notes", "name: " + strings.Repeat("n", 65), "name"},
	{"name: notes", "name: 7", "name"},
	{"name: notes", `name: ""`, "name"},
	{"name: notes", "name:", "name"},
	{"name: notes", "labels: {}", "labels"},
	{"version: 1.0.0", "version: 1.0", "version"},
	{"version: 1.0.0", "name: other", "name"},
	{"module: notes.wasm", "module: ../notes.wasm", "module"},
	{"module: notes.wasm", "module: /notes.wasm", "module"},
	{"module: notes.wasm", `module: "C:\\notes.wasm"`, "module"},
	{"module: notes.wasm", "module: a/../notes.wasm", "module"},
	{"module: notes.wasm", "module: .", "module"},
	{"module: notes.wasm", "source: {language: go, dir: ..}", "source.dir"},
	{"module: notes.wasm", "source: {dir: .}", "source.language"},
	{"module: notes.wasm", "module: notes.wasm\nsource: {language: go}", "source"},
	{"module: notes.wasm", "#", "module"},
	{"abi: command", "abi: wasi", "abi"},
	{"tools:", "relaxations: {}\ntools:", "relaxations"},
	{"list_notes\n", "list notes\n", "tools[0].name"},
	{"list_notes\n", strings.Repeat("n", 129) + "\n", "tools[0].name"},
	{"- name: list_notes", "- name: add_note", "tools[1].name"},
	{"- name: list_notes", "- name: Add_Note", "tools[1].name"},
	{"title: List notes", "title: [a]", "tools[0].title"},
	{"title: List notes", `title: "a\nb"`, "tools[0].title"},
	{"title: List notes", `title: "a\u202eb"`, "tools[0].title"},
	{"title: List notes", `title: "a\u001b[31mb"`, "tools[0].title"},
	{"title: List notes", `title: "a\U000e0041b"`, "tools[0].title"},
	{"title: List notes", `title: "` + strings.Repeat("x", 257) + `"`, "tools[0].title"},
	{"Lists the notes.", strings.Repeat("x", 8193), "tools[0].description"},
	{"Lists the notes.", `"a\u200bb"`, "tools[0].description"},
	{"inputSchema: {type: object}", "inputschema: {type: object}", "tools[0].inputschema"},
	{"inputSchema: {type: object}", "inputSchema: object", "tools[0].inputSchema"},
	{"inputSchema: {type: object}", "inputSchema: {type: [object]}", "tools[0].inputSchema"},
	{"inputSchema: {type: object}", "inputSchema: {}", "tools[0].inputSchema"},
	{"inputSchema: {type: object}", "inputSchema: {type: object, properties: 7}", "tools[0].inputSchema.properties"},
	{"outputSchema: {type: object", "outputSchema: {type: what", "tools[0].outputSchema.type"},
	{"readOnlyHint", "read_only_hint", "tools[0].annotations.read_only_hint"},
	{"readOnlyHint", "ReadOnlyHint", "tools[0].annotations.ReadOnlyHint"},
	{"readOnlyHint", "readonly-hint", "tools[0].annotations.readonly-hint"},
	{"readOnlyHint", "safeHint", "tools[0].annotations.safeHint"},
	{"readOnlyHint: true", "readOnlyHint: yes", "tools[0].annotations.readOnlyHint"},
	{"readOnlyHint: true", "readOnlyHint: null", "tools[0].annotations.readOnlyHint"},
	{"readOnlyHint: true", "readOnlyHint: 1", "tools[0].annotations.readOnlyHint"},
	{"readOnlyHint: true", "readOnlyHint: true, readOnlyHint: false", "tools[0].annotations.readOnlyHint"},
	{"readOnlyHint: true", "readOnlyHint: true, readonlyHint: false", "tools[0].annotations"},
	{"idempotencyKeyArgument: idempotency_key", "idempotencyKeyArgument: key", "tools[1].idempotencyKeyArgument"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: sampling", "tools[1].clientCapabilities"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities:", "tools[1].clientCapabilities"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: {sampling: {}}", "tools[1].clientCapabilities"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: [sampling, roots, sampling]", "tools[1].clientCapabilities[2]"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: [Sampling]", "tools[1].clientCapabilities[0]"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: [tasks]", "tools[1].clientCapabilities[0]"},
	{"idempotencyKeyArgument: idempotency_key", "clientCapabilities: [null]", "tools[1].clientCapabilities[0]"},
	{"idempotencyKeyArgument: idempotency_key", "clientcapabilities: [sampling]", "tools[1].clientcapabilities"},
	{"access: write", "access: admin", "requests.volumes[0].access"},
	{"access: write", "access: none", "requests.volumes[0].access"},
	{"access: write", "mode: write", "requests.volumes[0].mode"},
	{"path: /ref", "path: /data", "requests.volumes[1].path"},
	{"path: /ref", "path: /data/ref", "requests.volumes[1].path"},
	{"path: /ref", "path: /", "requests.volumes[1].path"},
	{"path: /ref", "path: /tmp", "requests.volumes[1].path"},
	{"path: /ref", "path: /tmp/x", "requests.volumes[1].path"},
	{"path: /ref", "path: /session/x", "requests.volumes[1].path"},
	{"path: /ref", "path: ref", "requests.volumes[1].path"},
	{"path: /ref", "path: /ref/", "requests.volumes[1].path"},
	{"path: /ref", "path: /ref/../x", "requests.volumes[1].path"},
	{"path: /ref", `path: "/r\u202ef"`, "requests.volumes[1].path"},
	{"name: ref", "name: data", "requests.volumes[1].name"},
	{"name: ref", "name: Ref", "requests.volumes[1].name"},
	{"kv: true", "kv: 1", "requests.kv"},
	{"sql: [{name: main}]", "sql: [main]", "requests.sql[0]"},
	{"sql: [{name: main}]", "sql: [{name: main}, {name: main}]", "requests.sql[1].name"},
	{"api.example.com", "https://api.example.com", "requests.http[0].host"},
	{"api.example.com", "API.example.com", "requests.http[0].host"},
	{"api.example.com", `"a b"`, "requests.http[0].host"},
	{"methods: [GET]", "methods: [get]", "requests.http[0].methods[0]"},
	{"methods: [GET]", "methods: GET", "requests.http[0].methods"},
	{"paths: [/v1/*]", "paths: [/v1/../x]", "requests.http[0].paths[0]"},
	{"secret: API_TOKEN", `secret: "A B"`, "requests.http[0].secret"},
	{"env: [TZ]", "env: [TZ, TZ]", "requests.env[1]"},
	{"env: [TZ]", "env: [A=B]", "requests.env[0]"},
	{"sessionScratch: 1MiB", "sessionScratch: 1MB", "requests.sessionScratch"},
	{"sessionScratch: 1MiB", "sessionScratch: -1", "requests.sessionScratch"},
	{"sessionScratch: 1MiB", "sessionScratch: 1GiB", "requests.sessionScratch"},
	{"/data/notes.json#/next_id", "/data/notes.json", "relaxations.volatile[0]"},
	{"/data/notes.json#/next_id", "/other/notes.json#/next_id", "relaxations.volatile[0]"},
	{"/data/notes.json#/next_id", "/data/notes.json#/a~2b", "relaxations.volatile[0]"},
	{"under: /data/history", "under: /elsewhere", "relaxations.history[0].under"},
	{"from: pending", "from: 1", "relaxations.transitions[0].from"},
	{"recoverable: 30d", "recoverable: 30 days", "relaxations.recoverable"},
	{"memory: 128MiB", "memory: 2GiB", "limits.memory"},
	{"memory: 128MiB", "memory: 1.5MiB", "limits.memory"},
	{"timeout: 1m30s", "timeout: 11m", "limits.timeout"},
	{"timeout: 1m30s", "timeout: 5", "limits.timeout"},
	{"timeout: 1m30s", "timeout: -5s", "limits.timeout"},
	{"fuel: 7", "fuel: -1", "limits.fuel"},
	{"fuel: 7", "fuel: 1.5", "limits.fuel"},
	{"files: 10", "files: 100001", "limits.files"},
	{"tool: list_notes", "tool: other", "warmup.tool"},
	{"arguments: {b", "args: {b", "warmup.args"},
	{"{data: private}", "{data: 1}", "labels.data"},
	{"{data: private}", "{data: private, Data: public}", "labels"},
	{"labels:", "labels: &x\nwarmups:", ""},
	{"labels: {data: private}", "labels: *x", ""},
	{"labels: {data: private}", "labels: !!map {data: private}", ""},
	{"labels: {data: private}", "<<: {data: private}", ""},
	{"labels: {data: private}", "? labels\n: {data: private}", ""},
	{"labels: {data: private}", "labels: {data: private", ""},
	{"labels: {data: private}", "labels: {data: .inf}", ""},
	{"labels: {data: private}", "labels: {data: 010}", "labels.data"},
	{"labels: {data: private}", "labels: {1: private}", "labels"},
	{"labels: {data: private}", "labels: {data: \"a\x01b\"}", ""},
	{"labels: {data: private}", "  labels: {data: private}", ""},
	{"labels: {data: private}", "---\nname: b", ""},
}
