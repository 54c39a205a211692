package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

const (
	hashA = "58db1a70e3bb1ead7abeb6e5d68a52fa58bf3c9c4e2f7b6dbbfa5e7da1ed3b6d"
	hashB = "68db1a70e3bb1ead7abeb6e5d68a52fa58bf3c9c4e2f7b6dbbfa5e7da1ed3b6d"
)

// full has every key.
const full = `# a comment
packages:
  - source: ./notes
    as: my-notes
    mode: report
    volumes: {data: {folder: ./my-notes}, in: {managed: shared}}
    env: {TZ: UTC, EMPTY: ""}
    optionalWrites: [.git/index, "*.lock"]
    outbox: {mail.example.com: {file: ./sent.jsonl}}
    appendOnly: ["/data/*.log"]
    volatileFiles: ["*.tmp"]
    relaxations: [recoverable 720h0m0s]
    additive: {recoverable: 30d}
    replay: {default: always, slow: "off"}
    commitOnError: [save_many]
    limits: {calls: 1, waiting: 2, memory: 128MiB}
  - source: ../other.wasm
  - source: ./notes
principals:
  - {name: alice, token: "sha256:` + hashA + `"}
  - {name: bob, token: "sha256:` + hashB + `"}
limits: {requests: 5, body: 1MiB, calls: 6, waiting: 7, memory: 2GiB, package: {calls: 3, waiting: 4, memory: 512MiB}}
listen: {http: 0.0.0.0:80, metrics: "[::1]:9464", withoutAuthentication: false}
store: postgres://db.example.com/s
keep: {undo: 2d, undoSize: 2MiB, idempotencyKeys: 1h}
hostTools: [sandboxd_undo]
audit: {maxSize: 1MiB, keep: 90d}
log: {level: debug, format: json}
traces: {endpoint: "http://127.0.0.1:4318", sample: 0.25}
process: {gcPercent: 100, memoryLimit: 1GiB}
grace: 1m30s
`

func token(t *testing.T, s string) (hash [32]byte) {
	t.Helper()
	for i := range hash {
		n, err := strconv.ParseUint(s[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		hash[i] = byte(n)
	}
	return hash
}

// plain returns a configuration without what it remembers of its file.
func plain(c *Config) *Config {
	d := *c
	d.file, d.places = "", nil
	return &d
}

func TestParse(t *testing.T) {
	dir, err := filepath.Abs("d")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(filepath.Join("d", "sandboxd.yaml"), []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	each := PackageLimits{Calls: 3, Waiting: 4, Memory: 512 << 20}
	want := &Config{
		Packages: []Package{
			{
				Source: filepath.Join(dir, "notes"), As: "my-notes", Mode: capabilities.Report,
				Folders: map[string]string{"data": filepath.Join(dir, "my-notes")}, Managed: map[string]string{"in": "shared"},
				Env: map[string]string{"TZ": "UTC", "EMPTY": ""}, OptionalWrites: []string{".git/index", "*.lock"},
				Limits:     PackageLimits{Calls: 1, Waiting: 2, Memory: 128 << 20},
				Outbox:     map[string]Sink{"mail.example.com": {File: filepath.Join(dir, "sent.jsonl")}},
				AppendOnly: []string{"/data/*.log"}, VolatileFiles: []string{"*.tmp"},
				Relaxations: Relaxations{Lines: []string{"recoverable 720h0m0s"}}, Recoverable: 30 * 24 * time.Hour,
				Replay: map[string]Replay{"default": "always", "slow": "off"}, CommitOnError: []string{"save_many"},
			},
			{Source: filepath.Join(filepath.Dir(dir), "other.wasm"), Limits: each},
			{Source: filepath.Join(dir, "notes"), Limits: each},
		},
		Principals: []Principal{{"alice", token(t, hashA)}, {"bob", token(t, hashB)}},
		Limits:     Limits{Requests: 5, Body: 1 << 20, Calls: 6, Waiting: 7, Memory: 2 << 30, Package: each},
		Listen:     Listen{HTTP: "0.0.0.0:80", Metrics: "[::1]:9464"},
		Store:      "postgres://db.example.com/s",
		Keep:       Keep{Undo: 48 * time.Hour, UndoSize: 2 << 20, IdempotencyKeys: time.Hour},
		HostTools:  []string{"sandboxd_undo"},
		Audit:      Audit{MaxSize: 1 << 20, Keep: 90 * 24 * time.Hour},
		Log:        Log{Level: "debug", Format: "json"},
		Traces:     Traces{Endpoint: "http://127.0.0.1:4318", Sample: 0.25},
		Process:    Process{GCPercent: 100, MemoryLimit: 1 << 30},
		Grace:      90 * time.Second,
	}
	if got := plain(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What is left out has its default, in whichever mapping it is left out.
func TestParseDefaults(t *testing.T) {
	for _, doc := range []string{"packages: []", "limits: {}", "limits: {package: {}}", "listen: {}", "audit: {}", "log: {}", "process: {}"} {
		c, err := Parse("sandboxd.yaml", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
		} else if got := plain(c); !reflect.DeepEqual(got, Default()) {
			t.Errorf("%s: %+v", doc, got)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	if _, err := Load(file); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "c.yaml") != 1 {
		t.Errorf("%v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder is read")
	}
	for doc, ok := range map[string]bool{
		"packages: [{source: p}]":                                      true,
		"packages: []\n" + strings.Repeat("#", strictyaml.MaxDocument): false,
	} {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file)
		if (err == nil) != ok || ok && c.Packages[0].Source != filepath.Join(dir, "p") {
			t.Errorf("%.20s: %+v, %v", doc, c, err)
		}
	}
}

func TestFault(t *testing.T) {
	c, err := Parse("c.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"packages[0].source":       "c.yaml:3:13: packages[0].source: p; m",
		"packages[0].volumes.data": "c.yaml:6:15: packages[0].volumes.data: p; m",
		"packages[2]":              "c.yaml:18:5: packages[2]: p; m",
		"packages[9]":              "c.yaml: packages[9]: p; m",
	} {
		if e := c.Fault(field, "p", "m", fs.ErrNotExist); e.Error() != want || !errors.Is(e, fs.ErrNotExist) {
			t.Errorf("%v, want %s", e, want)
		}
	}
	if e := Default().Fault("packages[0]", "p", "m", nil); e.Error() != "configuration: packages[0]: p; m" {
		t.Errorf("%v", e)
	}
}

// TestRoundTrip writes configurations as YAML and reads them back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want, doc := drawn(rt)
		got, err := Parse("/d/sandboxd.yaml", []byte(doc))
		if err != nil {
			rt.Fatalf("%v\n%s", err, doc)
		}
		if got = plain(got); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%s\ngot  %+v\nwant %+v", doc, got, want)
		}
	})
}

// drawn returns a configuration and how it is written.
func drawn(rt *rapid.T) (*Config, string) {
	var b strings.Builder
	c := Default()
	name := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,10}x`)
	draw := func(label string, most int) int { return rapid.IntRange(1, most).Draw(rt, label) }
	limits := func(label string) PackageLimits {
		return PackageLimits{draw(label+" calls", maxCalls), draw(label+" waiting", maxWaiting), int64(draw(label+" memory", 1<<30)) + minMemory}
	}
	c.Limits.Package = limits("package")
	l := c.Limits.Package
	fmt.Fprintf(&b, "limits: {package: {calls: %d, waiting: %d, memory: %d}}\n", l.Calls, l.Waiting, l.Memory)
	c.Grace = time.Duration(rapid.Int64Range(1, int64(maxGrace)).Draw(rt, "grace"))
	fmt.Fprintf(&b, "grace: %s\npackages:\n", c.Grace)
	for i := range draw("packages", 4) {
		p := Package{Source: filepath.FromSlash(fmt.Sprintf("/d/p%d", i)), As: fmt.Sprintf("n%d", i), Limits: l}
		if vol := filepath.VolumeName(mustAbs(rt, "/d")); vol != "" {
			p.Source = vol + p.Source
		}
		fmt.Fprintf(&b, "  - source: p%d\n    as: %s\n", i, p.As)
		if rapid.Bool().Draw(rt, "report") {
			p.Mode = capabilities.Report
			b.WriteString("    mode: report\n")
		}
		for n, v := range rapid.MapOfN(name, name, 0, 3).Draw(rt, "managed") {
			if p.Managed == nil {
				b.WriteString("    volumes:\n")
			}
			set(&p.Managed, n, v)
			fmt.Fprintf(&b, "      %q: {managed: %q}\n", n, v)
		}
		for n, v := range rapid.MapOfN(rapid.StringMatching(`[A-Z]{1,4}`), rapid.StringMatching(`[ -~é\n]{0,8}`), 0, 3).Draw(rt, "env") {
			if p.Env == nil {
				b.WriteString("    env:\n")
			}
			set(&p.Env, n, v)
			fmt.Fprintf(&b, "      %q: %q\n", n, v)
		}
		if rapid.Bool().Draw(rt, "limits") {
			p.Limits = limits("own")
			fmt.Fprintf(&b, "    limits: {memory: %d, calls: %d, waiting: %d}\n", p.Limits.Memory, p.Limits.Calls, p.Limits.Waiting)
		}
		c.Packages = append(c.Packages, p)
	}
	return c, b.String()
}

func mustAbs(rt *rapid.T, path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		rt.Fatal(err)
	}
	return abs
}

// FuzzParse: a configuration xor an error with a place.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	for _, doc := range refused {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("sandboxd.yaml", b)
		if (err == nil) == (c == nil) {
			t.Fatalf("%+v, %v", c, err)
		}
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Problem == "" || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Fatalf("%T %q", err, err)
			}
			return
		}
		authenticated := len(c.Principals) > 0
		if err := CheckListen(c.Listen.HTTP, authenticated, c.Listen.WithoutAuthentication); err != nil {
			t.Fatalf("accepted: %v", err)
		}
		for _, p := range c.Packages {
			if !filepath.IsAbs(p.Source) || p.Limits.Calls < 1 || p.Limits.Waiting < 1 || p.Limits.Memory < 1 {
				t.Fatalf("accepted: %+v", p)
			}
		}
	})
}
