package sandboxd_test

import (
	"bufio"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sandboxd/sandboxd/"

// mayImport lists which packages of this module each package may import,
// directly. A package that is not in it fails, and so does a table that goes in
// a circle.
var mayImport = map[string][]string{
	"capabilities":                 {},
	"capabilities/volume":          {"capabilities", "internal/lazymap"},
	"capabilities/files":           {"capabilities", "capabilities/volume"},
	"capabilities/store":           {},
	"capabilities/store/storetest": {"capabilities/store"},
	"capabilities/store/sqlite":    {"capabilities/store"},
	"capabilities/store/postgres":  {"capabilities/store"},
	"capabilities/volume/stored":   {"capabilities", "capabilities/store", "capabilities/volume"},
	"capabilities/kv":              {"capabilities", "capabilities/store", "internal/lazymap"},
	"capabilities/outbox":          {"capabilities", "capabilities/store"},
	"capabilities/additive":        {"capabilities", "capabilities/volume"},
	"capabilities/undo":            {"capabilities", "capabilities/store", "capabilities/volume"},
	"capabilities/tx": {
		"capabilities", "capabilities/kv", "capabilities/outbox", "capabilities/store", "capabilities/undo", "capabilities/volume",
		"capabilities/volume/stored",
	},
	"internal/pgtest":    {},
	"internal/memstore":  {"capabilities/store"},
	"internal/courier":   {"capabilities/outbox", "capabilities/store"},
	"internal/wasmbin":   {},
	"internal/term":      {},
	"internal/regular":   {},
	"internal/asyncify":  {"internal/regular", "internal/wasmbin"},
	"internal/wasmtest":  {},
	"internal/enough":    {},
	"internal/lazymap":   {},
	"tool":               {"capabilities", "internal/regular", "internal/strictyaml", "internal/term", "internal/wasmbin"},
	"runtime/image":      {},
	"runtime/wasi":       {"capabilities", "capabilities/volume", "capabilities/files"},
	"runtime/hostmcp":    {"runtime/wasi"},
	"runtime/hostengine": {"internal/wasmbin", "runtime/wasi"},
	"runtime/hostkv":     {"capabilities", "capabilities/kv", "runtime/wasi"},
	"runtime/hostoutbox": {"capabilities", "capabilities/outbox", "runtime/wasi"},
	"runtime": {
		"capabilities", "capabilities/additive", "capabilities/files", "capabilities/kv", "capabilities/outbox", "capabilities/store",
		"capabilities/tx", "capabilities/undo", "capabilities/volume", "capabilities/volume/stored",
		"internal/asyncify", "internal/wasmbin", "runtime/hostengine", "runtime/hostkv", "runtime/hostmcp", "runtime/hostoutbox", "runtime/image", "runtime/wasi", "tool",
	},
	"internal/strictyaml": {"internal/term"},
	"internal/build":      {"internal/regular", "tool"},
	"internal/audit":      {"capabilities", "capabilities/store", "internal/courier", "internal/term", "runtime"},
	"internal/httpio":     {},
	"internal/metrics":    {"capabilities", "runtime"},
	"internal/trace":      {"capabilities", "runtime"},
	"internal/trust":      {"capabilities", "internal/regular", "internal/term", "tool"},
	"internal/config":     {"capabilities", "internal/strictyaml", "internal/term", "tool"},
	"internal/mcpserver":  {"capabilities", "capabilities/undo", "runtime", "tool"},
	"internal/host": {
		"capabilities/store", "capabilities/store/postgres", "capabilities/store/sqlite", "capabilities/undo", "internal/asyncify", "internal/audit", "internal/config",
		"internal/courier", "internal/trust", "internal/wasmbin", "runtime", "tool",
	},
	"internal/daemon": {
		"internal/audit", "internal/config", "internal/courier", "internal/host", "internal/httpio", "internal/mcpserver", "internal/metrics",
		"internal/trace", "internal/trust", "runtime", "tool",
	},
	"internal/demo": {
		"capabilities", "capabilities/kv", "capabilities/outbox", "capabilities/store", "capabilities/volume/stored", "guests", "internal/audit", "internal/build",
		"internal/config", "internal/host", "internal/mcpserver", "internal/term", "internal/trust", "runtime", "tool",
	},
	"internal/verify": {
		"capabilities", "capabilities/volume/stored", "internal/memstore", "internal/regular", "internal/strictyaml", "internal/term", "runtime", "tool",
	},
	"internal/conformance":  {},
	"internal/corpus":       {},
	"internal/crash":        {},
	"internal/clients":      {},
	"internal/interpreters": {},
	"internal/prometheus":   {},
	"internal/soak":         {},
	"internal/snippets":     {},
	"cmd/sandboxd": {
		"capabilities", "capabilities/store", "capabilities/undo", "capabilities/volume", "capabilities/volume/stored", "guests", "internal/audit", "internal/build", "internal/config", "internal/daemon", "internal/demo",
		"internal/host", "internal/mcpserver", "internal/memstore", "internal/term", "internal/trust", "internal/verify", "internal/wasmbin", "runtime", "tool",
	},
	"internal/clients/guest":     {"guests/sdk"},
	"internal/conformance/guest": {"guests/sdk"},
	"internal/crash/guest":       {"guests/sdk", "guests/sdk/kv", "guests/sdk/outbox"},
	"guests":                     {},
	"guests/sdk":                 {},
	"guests/sdk/kv":              {},
	"guests/sdk/outbox":          {},
	"guests/wasi":                {},
	"guests/internal/guesttest":  {"guests/sdk"},
	"guests/files":               {"guests/files/filetools", "guests/sdk"},
	"guests/files/command":       {"guests/files/filetools", "guests/sdk"},
	"guests/files/filetools":     {"guests/files/glob", "guests/sdk"},
}

// onlyImporter names the one package that may import a library.
var onlyImporter = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "internal/mcpserver",
	"github.com/goccy/go-yaml":               "internal/strictyaml",
	"github.com/prometheus/client_golang":    "internal/metrics",
	"go.opentelemetry.io/otel":               "internal/trace",
	"github.com/fsnotify/fsnotify":           "internal/daemon",
	"github.com/alecthomas/kong":             "cmd/sandboxd",
	"github.com/ncruces/go-sqlite3":          "capabilities/store/sqlite",
	"github.com/jackc/pgx":                   "capabilities/store/postgres",
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
}

func TestImportDirection(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, listed := mayImport[name]
		if strings.HasPrefix(name, "guests/") && !listed {
			allowed, listed = []string{"guests/sdk", "guests/sdk/kv", "guests/sdk/outbox", "guests/wasi"}, true
		}
		if !listed && len(p.GoFiles) > 0 {
			t.Errorf("%s: not in the table of import directions", name)
			continue
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module); ok && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s: against the direction", name, own)
			}
			for library, importer := range onlyImporter {
				if strings.HasPrefix(i, library) && name != importer {
					t.Errorf("%s imports %s: only %s may", name, i, importer)
				}
			}
		}
	}
}

// TestDirectionHasNoCycle holds the table itself to a direction.
func TestDirectionHasNoCycle(t *testing.T) {
	const entered, left = 1, 2
	state := map[string]int{}
	var walk func(name string, way []string)
	walk = func(name string, way []string) {
		way = append(way, name)
		switch state[name] {
		case entered:
			t.Errorf("the table goes in a circle: %s", strings.Join(way, " -> "))
			return
		case left:
			return
		}
		state[name] = entered
		for _, next := range mayImport[name] {
			walk(next, way)
		}
		state[name] = left
	}
	for name := range mayImport {
		walk(name, nil)
	}
}

// TestCapabilitiesPure holds the law free of I/O.
func TestCapabilitiesPure(t *testing.T) {
	impure := []string{"os", "net", "io/fs", "syscall", "os/exec", "net/http", "time"}
	for _, p := range listPackages(t) {
		if p.ImportPath != module+"capabilities" {
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains(impure, i) || strings.Contains(i, ".") {
				t.Errorf("capabilities imports %s: it is pure and uses the standard library only", i)
			}
		}
	}
}

func TestNoCgoAndUnsafeOnlyInUnsafeFiles(t *testing.T) {
	banned := regexp.MustCompile(`(?m)^\s*(?:import\s+)?(?:[\w.]+\s+)?"(unsafe|C)"`)
	eachGoFile(t, func(path string, source []byte) {
		for _, m := range banned.FindAllSubmatch(source, -1) {
			if string(m[1]) == "unsafe" && strings.HasSuffix(path, "_unsafe.go") {
				continue
			}
			t.Errorf("%s imports %q", path, m[1])
		}
	})
}

// TestRuntimeAlias keeps the standard library's runtime apart from ours.
func TestRuntimeAlias(t *testing.T) {
	bare := regexp.MustCompile(`(?m)^\s*(?:import\s+)?"runtime"$`)
	eachGoFile(t, func(path string, source []byte) {
		if bare.Match(source) && !strings.HasPrefix(path, "guests"+string(filepath.Separator)) {
			t.Errorf("%s: import the standard library's runtime as goruntime", path)
		}
	})
}

// TestNoAuthorityInContext keeps authority a value: nothing is handed on in a
// context.
func TestNoAuthorityInContext(t *testing.T) {
	eachGoFile(t, func(path string, source []byte) {
		if strings.Contains(string(source), "context.With"+"Value(") {
			t.Errorf("%s uses context.With"+"Value", path)
		}
	})
}

// TestFileLength holds files to a length that one reads in one go.
func TestFileLength(t *testing.T) {
	eachGoFile(t, func(path string, source []byte) {
		limit := 400
		if strings.HasSuffix(path, "_test.go") {
			limit = 600
		}
		if n := strings.Count(string(source), "\n"); n > limit {
			t.Errorf("%s: %d lines, at most %d", path, n, limit)
		}
	})
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Dir,GoFiles,CgoFiles", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if len(ps) < 5 {
		t.Fatalf("%d packages listed: the list is not right", len(ps))
	}
	return ps
}

func eachGoFile(t *testing.T, f func(path string, source []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err == nil && !generated(source) {
			f(path, source)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func generated(source []byte) bool {
	first, _ := bufio.NewReader(strings.NewReader(string(source))).ReadString('\n')
	return strings.HasPrefix(first, "// Code generated ")
}
