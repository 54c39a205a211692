package tool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// docRow is a field as docs/manifest.md describes it.
type docRow struct{ is, byDefault, most string }

func docRows(t *testing.T) map[string]docRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "manifest.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]docRow{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		cell := func(i int) string { return strings.Trim(cells[i], " `") }
		if _, twice := rows[cell(1)]; twice {
			t.Errorf("docs/manifest.md has %s twice", cell(1))
		}
		rows[cell(1)] = docRow{strings.TrimSpace(cells[2]), cell(3), cell(4)}
	}
	return rows
}

// docs/manifest.md has each field that the decoder reads, and no other.
func TestManifestDocFields(t *testing.T) {
	rows := docRows(t)
	known := map[string]bool{}
	for at, fields := range fieldsOf {
		for _, f := range fields {
			known[strings.TrimPrefix(at+"."+f, ".")] = true
		}
	}
	for f := range known {
		if _, ok := rows[f]; !ok {
			t.Errorf("docs/manifest.md does not describe %s", f)
		}
	}
	for f := range rows {
		if !known[f] {
			t.Errorf("docs/manifest.md describes %s, which is no field", f)
		}
	}
}

// docs/manifest.md has the defaults and maxima that the decoder has.
func TestManifestDocNumbers(t *testing.T) {
	rows := docRows(t)
	m, err := ParseManifest("tool.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	l := m.Limits
	size := func(s string) int64 { n, _ := strictyaml.ParseSize(s); return n }
	for field, want := range map[string][2]int64{
		"limits.memory":           {l.Memory, gib},
		"limits.output":           {l.Output, 16 * mib},
		"limits.writes":           {l.Writes, gib},
		"limits.files":            {l.Files, maxFiles},
		"tools":                   {0, maxTools},
		"labels":                  {0, maxLabels},
		"requests.sessionScratch": {0, maxScratch},
		"requests.volumes":        {0, maxRequest},
		"tools[].description":     {0, maxDescription},
		"tools[].inputSchema":     {0, maxSchema},
	} {
		r := rows[field]
		if want[0] != 0 && size(r.byDefault) != want[0] || size(r.most) != want[1] {
			t.Errorf("docs/manifest.md: %s: default %q, at most %q, want %v", field, r.byDefault, r.most, want)
		}
		if want[0] == 0 || field == "limits.files" {
			continue
		}
		doc := small + "limits: {" + strings.TrimPrefix(field, "limits.") + ": "
		if got, err := ParseManifest("tool.yaml", []byte(doc+r.most+"}\n")); err != nil {
			t.Errorf("%s: %s is refused: %v, %+v", field, r.most, err, got)
		}
		if _, err := ParseManifest("tool.yaml", []byte(doc+"1025MiB}\n")); err == nil {
			t.Errorf("%s: more than %s is accepted", field, r.most)
		}
	}
	for field, want := range map[string][2]time.Duration{
		"limits.timeout":          {l.Timeout, maxTimeout},
		"relaxations.recoverable": {0, maxRecoverable},
	} {
		byDefault, ok := strictyaml.ParseDuration(rows[field].byDefault)
		most, ok2 := strictyaml.ParseDuration(rows[field].most)
		if !ok || !ok2 || byDefault != want[0] || most != want[1] {
			t.Errorf("docs/manifest.md: %s: %+v, want %v", field, rows[field], want)
		}
	}
	if !strings.Contains(rows["limits.memory"].is, "at least 64KiB") || minMemory != size("64KiB") {
		t.Error("docs/manifest.md: limits.memory does not name its least value")
	}
}

// What docs/manifest.md calls not supported yet gives a warning, and the
// reverse.
func TestManifestDocNotSupported(t *testing.T) {
	m, err := ParseManifest("tool.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	warned := func(field string) bool {
		return slices.ContainsFunc(m.Warnings, func(w string) bool {
			name, rest, _ := strings.Cut(w, ": not supported yet")
			_, last, inTool := strings.Cut(name, ": ")
			return rest != "" && (name == field || inTool && "tools[]."+last == field)
		})
	}
	for field, r := range docRows(t) {
		if says := strings.Contains(r.is, "not supported yet"); says != warned(field) {
			t.Errorf("%s: docs/manifest.md says not supported: %t, the manifest warns: %t", field, says, warned(field))
		}
	}
}

// Slips in names are answered with the name that was meant.
func TestDidYouMean(t *testing.T) {
	for slip, want := range map[string]string{
		"nmae: x":             "did you mean name?",
		"limit: {}":           "did you mean limits?",
		"request: {}":         "did you mean requests?",
		"limits: {memroy: 1}": "did you mean memory?",
		"limits: {time: 1}":   "known here: memory, timeout",
		"colour: red":         "known here: name, version",
	} {
		_, err := ParseManifest("tool.yaml", []byte(small+slip+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", slip, err, want)
		}
	}
}

func TestMemoryBelowAPage(t *testing.T) {
	for size, ok := range map[string]bool{"65535": false, "1": false, "64KiB": true, "0": true} {
		_, err := ParseManifest("tool.yaml", []byte(small+"limits: {memory: "+size+"}\n"))
		me, _ := errors.AsType[*ManifestError](err)
		if (err == nil) != ok || !ok && (me == nil || me.Field != "limits.memory" || !strings.Contains(me.Mend, "64KiB")) {
			t.Errorf("%s: %v", size, err)
		}
	}
}

// A module that is not there is an error of the manifest's field, which says
// what is there.
func TestMissingModuleNamesOthers(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "tool.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tool.yaml", small)
	for _, want := range []string{"no .wasm file", "the folder has other.wasm"} {
		_, err := Load(dir, nil)
		me, ok := errors.AsType[*ManifestError](err)
		if !ok || me.File != manifest || me.Line != 3 || me.Field != "module" || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(me.Mend, want) {
			t.Errorf("%v, want %s", err, want)
		}
		write("other.wasm", "")
	}
}

// A module that registers its tools too late is told where to do it.
func TestNoToolsMend(t *testing.T) {
	_, err := ParseDescription([]byte(`{"tools":[]}`))
	me, ok := errors.AsType[*ManifestError](err)
	if !ok || me.Field != "tools" || !strings.Contains(me.Mend, "a reactor does not run main") {
		t.Errorf("%v", err)
	}
}

func TestFault(t *testing.T) {
	m, err := ParseManifest("d/tool.yaml", []byte(small+"abi: command\n"))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	if e := m.Fault("abi", "p", "m", why); e.Error() != "d/tool.yaml:5:6: abi: p; m" || !errors.Is(e, why) {
		t.Errorf("%v", e)
	}
	if e := (&Manifest{}).Fault("abi", "p", "", nil); e.Error() != "tool.yaml: abi: p" {
		t.Errorf("%v", e)
	}
}
