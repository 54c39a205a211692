package snippets

import (
	"debug/elf"
	"encoding/json"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// instruction is a line of a Containerfile.
type instruction struct {
	name string
	args string
}

// stages returns the instructions of each stage of the Containerfile.
func stages(t *testing.T) [][]instruction {
	t.Helper()
	var all [][]instruction
	text := strings.ReplaceAll(read(t, "deploy/container/Containerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if name == "FROM" {
			all = append(all, nil)
		}
		if len(all) == 0 {
			t.Fatalf("%s before FROM", name)
		}
		last := &all[len(all)-1]
		*last = append(*last, instruction{name, args})
	}
	if len(all) != 2 {
		t.Fatalf("%d stages, want one that builds and one that runs", len(all))
	}
	return all
}

// arguments returns the arguments of the only instruction of a name.
func arguments(t *testing.T, stage []instruction, name string) string {
	t.Helper()
	i := slices.IndexFunc(stage, func(i instruction) bool { return i.name == name })
	if i < 0 || slices.ContainsFunc(stage[i+1:], func(i instruction) bool { return i.name == name }) {
		t.Fatalf("%s: not there, or twice", name)
	}
	return stage[i].args
}

// array reads the form of arguments that needs no shell.
func array(t *testing.T, args string) []string {
	t.Helper()
	var words []string
	if err := json.Unmarshal([]byte(args), &words); err != nil {
		t.Fatalf("%s: not a JSON array, so a shell would be needed: %v", args, err)
	}
	return words
}

// TestContainerHasNothingElse holds the image that runs to the program alone.
func TestContainerHasNothingElse(t *testing.T) {
	final := stages(t)[1]
	if base := arguments(t, final, "FROM"); base != "gcr.io/distroless/static:nonroot" {
		t.Errorf("built from %s, which may have a shell", base)
	}
	for _, i := range final {
		if !slices.Contains([]string{"FROM", "COPY", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}, i.name) {
			t.Errorf("%s %s: nothing is run or added in this stage", i.name, i.args)
		}
	}
	user := arguments(t, final, "USER")
	if user != "65532:65532" {
		t.Errorf("user %s: want a number, which Kubernetes can tell from root", user)
	}
	for _, folder := range array(t, arguments(t, final, "VOLUME")) {
		if !slices.ContainsFunc(final, func(i instruction) bool {
			return i.name == "COPY" && strings.Contains(i.args, "--chown="+user+" ") && strings.HasSuffix(i.args, " "+folder)
		}) {
			t.Errorf("volume %s does not belong to the user", folder)
		}
	}
}

// TestContainerProgram builds the program as the Containerfile does, looks
// whether it needs a loader or a library, and runs it as the image does.
func TestContainerProgram(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("builds for Linux as the machine is")
	}
	both := stages(t)
	i := slices.IndexFunc(both[0], func(i instruction) bool { return i.name == "RUN" && strings.Contains(i.args, "go build ") })
	if i < 0 || !strings.HasPrefix(both[0][i].args, "CGO_ENABLED=0 ") {
		t.Fatal("no RUN CGO_ENABLED=0 go build")
	}
	built := filepath.Join(t.TempDir(), "sandboxd")
	build := exec.Command("sh", "-ec", strings.Replace(both[0][i].args, "/out/sandboxd", built, 1))
	build.Dir = clone
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(built)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("needs %v (%v)", libraries, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("needs a loader")
	}
	if entry := array(t, arguments(t, both[1], "ENTRYPOINT")); !slices.Equal(entry, []string{"/sandboxd"}) {
		t.Errorf("starts %v", entry)
	}
	p := run(t, built, array(t, arguments(t, both[1], "CMD")), "/var/lib/sandboxd/state", "/var/cache/sandboxd")
	p.stop(t, syscall.SIGTERM)
}
