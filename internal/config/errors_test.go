package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// refused are configurations with one thing wrong in each.
var refused = []string{
	"",
	"# nothing",
	"[]",
	"package: []",
	"packages: {source: p}",
	"packages: [p]",
	"packages: [{}]",
	"packages: [{source: 7}]",
	`packages: [{source: ""}]`,
	"packages: [{source: ~/notes}]",
	"packages: [{source: https://example.com/p}]",
	"packages: [{source: oci://example.com/p}]",
	`packages: [{source: "a\u202eb"}]`,
	"packages: [{sorce: p}]",
	"packages: [{source: p, Source: p}]",
	"packages: [{source: p, as: Notes}]",
	"packages: [{source: p, as: 7}]",
	"packages: [{source: p, mode: off}]",
	"packages: [{source: p, mode: observe}]",
	"packages: [{source: p}, {source: p}]",
	"packages: [{source: p}, {source: ./q/../p/}]",
	"packages: [{source: p, as: a}, {source: q, as: a}]",
	"packages: [{source: p, volumes: [data]}]",
	"packages: [{source: p, volumes: {data: ./x}}]",
	"packages: [{source: p, volumes: {data: {}}}]",
	"packages: [{source: p, volumes: {Data: {folder: x}}}]",
	"packages: [{source: p, volumes: {data: {folder: x, managed: y}}}]",
	"packages: [{source: p, volumes: {data: {managed: _y}}}]",
	"packages: [{source: p, volumes: {data: {folder: x, label: private}}}]",
	"packages: [{source: p, env: [TZ]}]",
	"packages: [{source: p, env: {TZ: 1}}]",
	"packages: [{source: p, env: {TZ: true}}]",
	"packages: [{source: p, env: {A=B: x}}]",
	`packages: [{source: p, env: {TZ: "a\0b"}}]`,
	"packages: [{source: p, optionalWrites: .git/index}]",
	"packages: [{source: p, optionalWrites: [/data/x]}]",
	`packages: [{source: p, optionalWrites: ["[a"]}]`,
	"packages: [{source: p, optionalWrites: [../x]}]",
	"packages: [{source: p, limits: {calls: 0}}]",
	"packages: [{source: p, limits: {calls: -1}}]",
	"packages: [{source: p, limits: {waiting: 1.5}}]",
	"packages: [{source: p, limits: {memory: 1KiB}}]",
	"packages: [{source: p, limits: {memory: 64MB}}]",
	"packages: [{source: p, limits: {requests: 1}}]",
	"principals: []",
	"principals: [alice]",
	"principals: [{name: alice}]",
	"principals: [{name: Alice, token: " + quoted(hashA) + "}]",
	"principals: [{name: local, token: " + quoted(hashA) + "}]",
	"principals: [{name: a, token: sbx_secret}]",
	"principals: [{name: a, token: sha256:secret}]",
	"principals: [{name: a, token: " + strings.ToUpper(hashA) + "}]",
	"principals: [{name: a, token: " + quoted("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") + "}]",
	"principals: [{name: a, token: " + quoted(hashA) + "}, {name: a, token: " + quoted(hashB) + "}]",
	"principals: [{name: a, token: " + quoted(hashA) + "}, {name: b, token: " + quoted(hashA) + "}]",
	"listen: 127.0.0.1:8080",
	"listen: {http: localhost}",
	"listen: {http: 8080}",
	"listen: {http: 0.0.0.0:8080}",
	`listen: {http: ":8080"}`,
	"listen: {http: example.com:8080}",
	"listen: {http: 127.0.0.1:http}",
	"listen: {http: 127.0.0.1:65536}",
	"listen: {metrics: 0.0.0.0:9464}",
	"listen: {http: 127.0.0.1:80, metrics: 127.0.0.1:80}",
	"listen: {withoutAuthentication: 1}",
	"listen: {withoutAuthentication: true}\nprincipals: [{name: a, token: " + quoted(hashA) + "}]",
	"limits: {requests: 0}",
	"limits: {requests: 65537}",
	"limits: {body: 1}",
	"limits: {body: 1GiB}",
	"limits: {memory: 1025GiB}",
	"limits: {calls: many}",
	"limits: {packages: {calls: 1}}",
	"limits: {package: {body: 1}}",
	"audit: {maxSize: 1}",
	"audit: {maxsize: 1MiB}",
	"audit: {keep: 0}",
	"audit: {keep: 8}",
	"audit: {keep: -1d}",
	"packages:\n\t- source: ./a\n",
	"log: {level: trace}",
	"log: {format: logfmt}",
	"traces: {sample: 1}",
	"traces: {endpoint: 127.0.0.1:4318}",
	"traces: {endpoint: grpc://127.0.0.1:4317}",
	"traces: {endpoint: http://user:secret@127.0.0.1:4318}",
	"traces: {endpoint: http://127.0.0.1:4318, sample: 1.5}",
	"traces: {endpoint: http://127.0.0.1:4318, sample: half}",
	"process: {gcPercent: 0}",
	"process: {gcPercent: 5}",
	"process: {memoryLimit: 1MiB}",
	"grace: 0",
	"grace: 30",
	"grace: 2h",
	"grace: 30s\ngrace: 40s",
	"grace: 30s\nGrace: 40s",
	"grace: &a 30s",
	"grace: !!str 30s",
	"grace: [",
	"grace: 30s\n---\ngrace: 30s",
}

func quoted(hash string) string { return `"sha256:` + hash + `"` }

// TestErrors shows what a user reads.
func TestErrors(t *testing.T) {
	var b strings.Builder
	for _, doc := range refused {
		c, err := Parse("sandboxd.yaml", []byte(doc))
		if c != nil || err == nil {
			t.Errorf("accepted: %s", doc)
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Problem == "" || e.Mend == "" || doc != "" && e.Field != "" && e.Line == 0 {
			t.Errorf("%s: %#v", doc, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("shows a secret: %v", err)
		}
		fmt.Fprintf(&b, "%s\n  %v\n", doc, err)
	}
	golden(t, "errors.golden", []byte(b.String()))
}

// What is not built yet is refused by name, at its place.
func TestNotSupported(t *testing.T) {
	docs := map[string]string{
		"packages[0].source":              "packages:\n- source: oci://example.com/p@sha256:00",
		"packages[0].volumes.data.label":  "packages:\n- {source: p, volumes: {data: {managed: m, label: private}}}",
		"packages[0].http":                "packages:\n- {source: p, http: [{host: api.example.com}]}",
		"packages[0].secrets":             "packages:\n- {source: p, secrets: {API_TOKEN: {env: MY_TOKEN}}}",
		"packages[0].quarantine":          "packages:\n- {source: p, quarantine: {after: 3}}",
		"packages[0].reportCommits":       "packages:\n- {source: p, reportCommits: false}",
		"packages[0].openness":            "packages:\n- {source: p, openness: tool}",
		"packages[0].confirm":             "packages:\n- {source: p, confirm: {mode: off}}",
		"packages[0].requireAttestations": "packages:\n- {source: p, requireAttestations: [key.pub]}",
		"packages[0].services":            "packages:\n- {source: p, services: {db: {url: x}}}",
	}
	for field, doc := range docs {
		_, err := Parse("sandboxd.yaml", []byte(doc))
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, tool.ErrNotSupported) || e.Field != field || e.Line != 2 || e.Mend == "" {
			t.Errorf("%s: %v", doc, err)
		}
	}
	if n := len(laterOf[""]) + len(laterOf["packages[]"]) + len(laterOf["packages[].volumes.*"]) + 1; n != len(docs) {
		t.Errorf("%d of %d fields are tried", len(docs), n)
	}
}

func TestTooMany(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for what, f := range map[string]struct {
		most int
		doc  func(n int) string
	}{
		"packages":   {maxPackages, func(n int) string { return "packages:\n" + many(n, "- {source: p%d}\n") }},
		"principals": {maxPrincipals, func(n int) string { return "principals:\n" + many(n, "- {name: p%[1]d, token: \"sha256:%064[1]d\"}\n") }},
		"volumes":    {maxEntries, func(n int) string { return "packages:\n- source: p\n  volumes:\n" + many(n, "    v%d: {managed: m}\n") }},
		"env":        {maxEntries, func(n int) string { return "packages:\n- source: p\n  env:\n" + many(n, "    V%d: x\n") }},
		"optional":   {maxEntries, func(n int) string { return "packages:\n- source: p\n  optionalWrites:\n" + many(n, "  - f%d\n") }},
	} {
		if _, err := Parse("f", []byte(f.doc(f.most))); err != nil {
			t.Errorf("%d %s: %v", f.most, what, err)
		}
		if _, err := Parse("f", []byte(f.doc(f.most+1))); err == nil {
			t.Errorf("%d %s are accepted", f.most+1, what)
		}
	}
}
