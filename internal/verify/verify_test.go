package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/internal/build"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// cache keeps what the tests compile, for all of them.
var cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sandboxd-verify-test-")
	if err != nil {
		panic(err)
	}
	cache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// bundled returns a bundled package, built once.
var bundled = func() func(t *testing.T, name string) *tool.Package {
	var mu sync.Mutex
	built := map[string]*tool.Package{}
	return func(t *testing.T, name string) *tool.Package {
		t.Helper()
		if testing.Short() {
			t.Skip("builds and compiles packages, which takes minutes with the race detector")
		}
		mu.Lock()
		defer mu.Unlock()
		if p := built[name]; p != nil {
			return p
		}
		b, err := build.New(build.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := guests.Extract(cache); err != nil {
			t.Fatal(err)
		}
		p, err := tool.Load(filepath.Join(cache, "guests", name), b.Func(context.Background()))
		if err != nil {
			t.Fatal(err)
		}
		built[name] = p
		return p
	}
}()

func verified(t *testing.T, name string, only ...string) *verify.Report {
	t.Helper()
	o := verify.Options{Package: bundled(t, name), Folder: "guests/" + name, Cache: filepath.Join(cache, "compiled"), Line: []string{"sandboxd", "verify", name}}
	if len(only) > 0 {
		o.Tool = only[0]
	}
	r, err := verify.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hintOf returns the verdict on a hint of a tool.
func hintOf(t *testing.T, r *verify.Report, tool string, h capabilities.Hint) verify.Hint {
	t.Helper()
	i := slices.IndexFunc(r.Tools, func(x verify.Tool) bool { return x.Name == tool })
	if i < 0 {
		t.Fatalf("no %s", tool)
	}
	return r.Tools[i].Hints[h-1]
}

func TestNotesAreHonest(t *testing.T) {
	t.Parallel()
	r := verified(t, "notes")
	if !r.Honest || r.Broken() != 0 || r.Ran < 6 {
		t.Errorf("%+v", r)
	}
	for _, x := range r.Tools {
		for _, h := range x.Hints {
			if h.Verdict != verify.Observed && h.Verdict != verify.Proved {
				t.Errorf("%s %s: %s, %s", x.Name, h.Hint, h.Verdict, h.Reason)
			}
		}
	}
}

// A tool without hints is told what it could declare, and the snippet says that.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	r := verified(t, "search-index")
	if !r.Honest {
		t.Errorf("%+v", r)
	}
	want := map[string]capabilities.Claim{}
	for _, x := range r.Tools {
		if x.Suggested != nil {
			want[x.Name] = *x.Suggested
		}
	}
	if got := want["purge_tenant"]; got != (capabilities.Claim{
		ReadOnly: capabilities.False, Destructive: capabilities.True, Idempotent: capabilities.True, OpenWorld: capabilities.False,
	}) {
		t.Errorf("purge_tenant: %+v", got)
	}
	var b bytes.Buffer
	if err := r.Suggestions(&b); err != nil {
		t.Fatal(err)
	}
	if got := claims(t, b.String()); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v in\n%s", got, want, b.String())
	}
	src := *bundled(t, "search-index")
	src.Manifest.Tools = slices.Clone(src.Manifest.Tools)
	for i, d := range src.Manifest.Tools {
		if c, ok := want[d.Name]; ok {
			src.Manifest.Tools[i].Claim = c
		}
	}
	again, err := verify.Run(t.Context(), verify.Options{Package: &src, Cache: filepath.Join(cache, "compiled")})
	if err != nil || !again.Honest || again.Count()[verify.UnderClaimed] != 0 || again.Suggestions(&b) != nil {
		t.Errorf("%v, %+v", err, again)
	}
}

// claims reads the annotations of a part of a manifest.
func claims(t *testing.T, text string) map[string]capabilities.Claim {
	t.Helper()
	n, err := strictyaml.ParseYAML("tool.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]capabilities.Claim{}
	for _, item := range n.Get("tools").Items {
		var c capabilities.Claim
		if err := json.Unmarshal(item.Get("annotations").JSON(false), &c); err != nil {
			t.Fatal(err)
		}
		m[item.Get("name").Text] = c
	}
	return m
}

// Every liar is found out, by the hint that it lies about, in its first lie.
func TestLiars(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some hundred calls")
	}
	t.Parallel()
	cases, err := guests.Cases("liars")
	if err != nil {
		t.Fatal(err)
	}
	r := verified(t, "liars")
	lies := map[string]string{}
	for _, c := range cases {
		if c.Honest != nil && !*c.Honest {
			lies[c.Tool] = c.Hint
		}
	}
	for _, x := range r.Tools {
		var broken []string
		for _, h := range x.Hints {
			if h.Verdict != verify.Broken {
				continue
			}
			broken = append(broken, h.Hint.String())
			if c := h.Counterexample; c == nil || c.Operation == "" || c.Object == "" || !strings.HasPrefix(c.Command, "sandboxd verify liars --cases ") {
				t.Errorf("%s: %+v", x.Name, c)
			}
		}
		if !slices.Equal(broken, []string{lies[x.Name]}) {
			t.Errorf("%s breaks %v, lies about %s", x.Name, broken, lies[x.Name])
		}
		if x.Suggested == nil {
			t.Errorf("%s: nothing suggested", x.Name)
		}
	}
	if r.Honest || r.Broken() != len(lies) {
		t.Errorf("%d broken of %d", r.Broken(), len(lies))
	}
}

// What a claim is kept by is named: the one relaxation without which it is not.
func TestRelaxations(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some hundred calls")
	}
	t.Parallel()
	r := verified(t, "relaylink")
	needs := map[string][]string{}
	for _, x := range r.Tools {
		for _, h := range x.Hints {
			if len(h.Relaxations) > 0 {
				needs[x.Name+" "+h.Hint.String()] = h.Relaxations
			}
		}
	}
	want := map[string][]string{
		"rename_contact destructiveHint":         {"volatile /data/contacts.json#/*/nickname"},
		"accept_contact destructiveHint":         {`transition at /data/contacts.json#/*/state from "pending" to "accepted"`},
		"read_forwarded destructiveHint":         {`transition at /data/forwarded.json#/*/state from "unread" to "read"`},
		"attachment_upload_link destructiveHint": {`transition at /data/attachments.json#/*/state from "pending" to "replaced"`},
		"notebook_update destructiveHint":        {"history of /data/notebook under /data/history"},
		"notebook_organize destructiveHint":      {"recoverable 720h0m0s"},
	}
	if !r.Honest || !reflect.DeepEqual(needs, want) {
		t.Errorf("honest %t, %v, want %v", r.Honest, needs, want)
	}
}

// Without the relaxations the same tool breaks its claim.
func TestUnrequestedRelaxations(t *testing.T) {
	if testing.Short() {
		t.Skip("builds more guests")
	}
	t.Parallel()
	src := *bundled(t, "relaylink")
	src.Manifest.Relaxations = tool.Relaxations{}
	r, err := verify.Run(t.Context(), verify.Options{Package: &src, Tool: "rename_contact", Cache: filepath.Join(cache, "compiled")})
	if err != nil {
		t.Fatal(err)
	}
	if h := hintOf(t, r, "rename_contact", capabilities.DestructiveHint); r.Honest || h.Verdict != verify.Broken || h.Counterexample.Phase != capabilities.PhaseCommit {
		t.Errorf("%+v", h)
	}
}

// No honest tool is called a liar.
func TestHonestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some hundred calls")
	}
	t.Parallel()
	for _, name := range []string{"honest", "memory"} {
		if r := verified(t, name); !r.Honest {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A denied attempt is no violation, and what is denied is not claimed anew; what
// ends in an error only says so.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds more guests")
	}
	t.Parallel()
	r := verified(t, "honest", "daily_digest")
	if h := hintOf(t, r, "daily_digest", capabilities.IdempotentHint); h.Verdict != verify.Observed || !h.TimeDependent {
		t.Errorf("%+v", h)
	}
	r = verified(t, "honest", "read_current") // its link is in no managed volume
	if h := hintOf(t, r, "read_current", capabilities.ReadOnlyHint); h.Verdict != verify.NotChecked || !strings.Contains(h.Reason, "1 tool_error") {
		t.Errorf("%+v", h)
	}
	r = verified(t, "weather")
	if h := hintOf(t, r, "get_weather", capabilities.ReadOnlyHint); h.Verdict != verify.Proved {
		t.Errorf("%+v", h)
	}
	if h := hintOf(t, r, "get_weather", capabilities.OpenWorldHint); h.Verdict != verify.Observed || r.Tools[0].Suggested != nil {
		t.Errorf("tries the network, and is told not to claim it: %+v", h)
	}
}

// Two runs say the same, byte by byte.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	var all [2][]byte
	for i := range all {
		var err error
		if all[i], err = json.Marshal(verified(t, "notes")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Errorf("%s\n%s", all[0], all[1])
	}
}

func TestDoesNotLoad(t *testing.T) {
	t.Parallel()
	_, err := verify.Run(t.Context(), verify.Options{Package: bundled(t, "liars-init")})
	if _, ok := errors.AsType[*runtime.LoadError](err); !ok {
		t.Errorf("%v", err)
	}
}

// Cases that do not fit are an error that names the file.
func TestCasesDoNotFit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unknown, twice := filepath.Join(dir, "unknown.yaml"), *bundled(t, "notes")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seedless := filepath.Join(dir, "seedless.yaml")
	write(seedless, "- {tool: list_notes, seed: testdata/no-such}\n")
	write(unknown, "- {tool: list_notes}\n- {tool: list_notes, before: [{tool: no_such}]}\n")
	twice.Dir = t.TempDir()
	write(filepath.Join(twice.Dir, "cases.json"), "[]")
	write(filepath.Join(twice.Dir, "cases.yaml"), "[]")
	for want, o := range map[string]verify.Options{
		"unknown.yaml: case 2: the package has no tool no_such": {Package: bundled(t, "notes"), Cases: unknown},
		"seedless.yaml: case 1: seed testdata/no-such":          {Package: bundled(t, "notes"), Cases: seedless},
		"missing.yaml": {Package: bundled(t, "notes"), Cases: filepath.Join(dir, "missing.yaml")},
		"--cases":      {Package: &twice},
	} {
		_, err := verify.Run(t.Context(), o)
		if !errors.Is(err, verify.ErrCases) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, o := range []verify.Options{{Tool: "no_such"}, {Call: "case-99"}} {
		o.Package = bundled(t, "notes")
		if _, err := verify.Run(t.Context(), o); !errors.Is(err, verify.ErrNoCall) {
			t.Errorf("%+v: %v", o.Tool+o.Call, err)
		}
	}
}

// A seed that cannot be one is an error, and no call is made.
func TestSeedWithALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	_, err := verify.Run(t.Context(), verify.Options{Package: bundled(t, "notes"), Contents: map[string]string{"data": dir}})
	if err == nil || !strings.Contains(err.Error(), "seed of volume data: ") || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%v", err)
	}
}
