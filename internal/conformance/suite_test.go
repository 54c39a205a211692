package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/clients"
)

var (
	node   = flag.String("node22", "node", "the `path` of a Node of version 22 or later")
	suite  = flag.String("suite", "", "the `path` of dist/index.js of @modelcontextprotocol/conformance")
	update = flag.Bool("update", false, "rewrite what the scenarios came to")
)

// timeLimit bounds a run of the suite, which takes seconds.
const timeLimit = 5 * time.Minute

// serve starts the program under test with the tools that the suite calls, and
// returns the address of its MCP endpoint.
func serve(t *testing.T) string {
	t.Helper()
	if *suite == "" {
		t.Skip("needs the conformance suite: run internal/clients/install.sh FOLDER and give -suite and -node22")
	}
	program, err := clients.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program.Serve(t, program.Package(t, "guest")).URL
}

// run runs what a revision of the protocol requires of servers. It returns the
// exit status and what the suite printed.
func run(t *testing.T, url, revision, baseline string) (status int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, *node, *suite, "server",
		"--url", url, "--requirements", revision, "--expected-failures", baseline, "--output-dir", t.TempDir())
	b, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return e.ExitCode(), string(b)
	}
	if err != nil {
		t.Fatalf("suite: %v\n%s", err, b)
	}
	return 0, string(b)
}

// scenario is the line of one scenario in the suite's summary.
var scenario = regexp.MustCompile(`(?m)^(✓|✗) ([\w-]+): (\d+ passed, \d+ failed)`)

// scenarios returns what the scenarios came to, a line each.
func scenarios(out string) string {
	var b strings.Builder
	for _, m := range scenario.FindAllStringSubmatch(out, -1) {
		fmt.Fprintf(&b, "%s %s: %s\n", m[1], m[2], m[3])
	}
	return b.String()
}

// baseline returns the part of baseline.yml for a revision, as the suite reads it.
func baseline(t *testing.T, revision string) string {
	t.Helper()
	b, err := os.ReadFile("baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?m)^"` + revision + `":\n((?:  .*\n)+)`).FindSubmatch(b)
	if part == nil {
		t.Fatalf("baseline.yml: nothing of %s", revision)
	}
	return regexp.MustCompile(`(?m)^  `).ReplaceAllString(string(part[1]), "")
}

// saved returns a file of that text.
func saved(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "baseline.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConformance(t *testing.T) {
	url := serve(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			status, out := run(t, url, revision, saved(t, baseline(t, revision)))
			if status != 0 {
				t.Errorf("suite: status %d\n%s", status, out)
			}
			// The suite says nothing of a scenario that it left out.
			golden(t, "scenarios-"+revision+".txt", scenarios(out))
		})
	}
}

// TestBaselineShrinksOnly shows that the suite, as it is run here, fails on a
// failure that the baseline does not list, and on a listed one that passes.
func TestBaselineShrinksOnly(t *testing.T) {
	url := serve(t)
	const revision = "2025-11-25"
	known := baseline(t, revision)
	unlisted := regexp.MustCompile(`(?m)^  - resources-read-text:.*\n`).ReplaceAllString(known, "")
	if unlisted == known {
		t.Fatal("resources-read-text: not in the baseline")
	}
	for name, text := range map[string]string{
		"a failure that is not listed":  unlisted,
		"a listed failure that is none": known + "  - tools-list:tools-list\n",
	} {
		t.Run(name, func(t *testing.T) {
			if status, out := run(t, url, revision, saved(t, text)); status == 0 {
				t.Errorf("suite: status 0\n%s", out)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
	}
}
